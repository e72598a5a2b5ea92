use super::*;

/// Gives 192.0.2.1 and port 20000, or nothing.
struct Giving(bool, Vec<Opening>);

impl Openings for Giving {
    fn open(&mut self, opening: Opening) -> Option<Endpoint4> {
        self.1.push(opening);
        self.0.then(|| Endpoint4::new(Ipv4Addr::new(192, 0, 2, 1), 20_000))
    }
}

const V4: &str = "10.0.0.1";
const V6: &str = "2001:db8::1";
const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);

/// A dialogue whose server has greeted.
fn greeted() -> Dialogue {
    let mut dialogue = Dialogue::new();
    assert_eq!(dialogue.reply(b"220 ready\r\n"), Answer::Keep);
    dialogue
}

fn says(dialogue: &mut Dialogue, client: &str, line: &str) -> Answer {
    let mut giving = Giving(true, Vec::new());
    let client = client.parse().unwrap();
    let answer =
        dialogue.command(line.as_bytes(), &mut Asked { client, server: SERVER, openings: &mut giving });
    assert!(giving.1.iter().all(|opening| opening.remote == SERVER));
    answer
}

fn changed(line: &str) -> Answer {
    Answer::line(line)
}

#[test]
fn a_clients_own_endpoint_is_replaced_and_no_other() {
    let mut dialogue = greeted();
    assert_eq!(says(&mut dialogue, V4, "PORT 10,0,0,1,19,137\r\n"), changed("PORT 192,0,2,1,78,32"));
    assert_eq!(says(&mut dialogue, V4, "EPRT |1|10.0.0.1|5001|\r\n"), changed("EPRT |1|192.0.2.1|20000|"));
    assert_eq!(says(&mut dialogue, V6, "EPRT |2|2001:db8::1|5001|\r\n"), changed("PORT 192,0,2,1,78,32"));
    for refused in ["PORT 10,0,0,2,19,137\r\n", "PORT 10,0,0,1,0,25\r\n", "EPRT |1|203.0.113.9|5001|\r\n"] {
        assert_eq!(says(&mut dialogue, V4, refused), Answer::Refuse, "{refused}");
    }
    for refused in
        ["EPRT |1|10.0.0.1|5001|\r\n", "EPRT |2|2001:db8::2|5001|\r\n", "EPRT |2|2001:db8::1|22|\r\n"]
    {
        assert_eq!(says(&mut dialogue, V6, refused), Answer::Refuse, "{refused}");
    }
    // RFC 6384 §10: what it is not about passes.
    for kept in ["PORT 10,0,0,1,19,137\r\n", "PASV\r\n", "EPRT 5\r\n", "EPSV x\r\n", "RETR a\r\n"] {
        assert_eq!(says(&mut dialogue, V6, kept), Answer::Keep, "{kept}");
    }
}

#[test]
fn without_a_mapping_the_command_stays() {
    let mut giving = Giving(false, Vec::new());
    let mut asked = Asked { client: V4.parse().unwrap(), server: SERVER, openings: &mut giving };
    assert_eq!(greeted().command(b"PORT 10,0,0,1,19,137\r\n", &mut asked), Answer::Refuse);
    assert_eq!(giving.1, [Opening { port: 5_001, remote: SERVER }]);
}

#[test]
fn epsv_becomes_pasv_and_its_reply_is_reformatted() {
    let mut dialogue = greeted();
    let reply = b"227 Entering Passive Mode (10,9,9,9,237,19)\r\n";
    for epsv in ["EPSV\r\n", "epsv 2\r\n"] {
        assert_eq!(says(&mut dialogue, V6, epsv), changed("PASV"));
        assert_eq!(dialogue.reply(reply), changed("229 Entering Extended Passive Mode (|||60691|)"));
    }
    // A client's own PASV passes, and so does its reply, and a refusal.
    assert_eq!(says(&mut dialogue, V6, "PASV\r\n"), Answer::Keep);
    assert_eq!(dialogue.reply(reply), Answer::Keep);
    says(&mut dialogue, V6, "EPSV\r\n");
    assert_eq!(dialogue.reply(b"530 Please login\r\n"), Answer::Keep);
    assert_eq!(dialogue.reply(reply), Answer::Keep);
    says(&mut dialogue, V6, "EPSV\r\n");
    assert_eq!(dialogue.reply(b"227 Entering (10,9,9,9,0,0)\r\n"), changed("425 Can't open data connection"));
    assert_eq!(says(&mut dialogue, V4, "EPSV\r\n"), Answer::Keep);
}

#[test]
fn what_is_not_for_the_server_becomes_noop_and_its_reply_the_clients() {
    let mut dialogue = greeted();
    for (command, reply) in [
        ("EPSV ALL\r\n", "504 Command not implemented for that parameter"),
        ("EPSV 1\r\n", "522 Network protocol not supported"),
        ("ALGS STATUS64\r\n", "216 EPSVEPRT"),
        ("ALGS disable64\r\n", "216 NONE"),
        ("ALGS STATUS64\r\n", "216 NONE"),
        ("ALGS\r\n", "504 Command not implemented for that parameter"),
    ] {
        assert_eq!(says(&mut dialogue, V6, command), changed("NOOP"), "{command}");
        assert_eq!(dialogue.reply(b"200 NOOP ok.\r\n"), changed(reply), "{command}");
    }
    assert_eq!(says(&mut dialogue, V6, "EPSV\r\n"), Answer::Keep);
    assert_eq!(says(&mut dialogue, V6, "EPRT |2|2001:db8::1|5001|\r\n"), Answer::Keep);
    assert_eq!(says(&mut dialogue, V6, "ALGS ENABLE64\r\n"), changed("NOOP"));
    assert_eq!(says(&mut dialogue, V6, "EPSV\r\n"), changed("PASV"));
}

#[test]
fn pipelined_commands_have_their_own_replies() {
    let mut dialogue = greeted();
    for line in ["USER a\r\n", "ALGS STATUS64\r\n", "RETR b\r\n", "EPSV\r\n"] {
        says(&mut dialogue, V6, line);
    }
    for line in ["331-more\r\n", "200 of it\r\n", "331 done\r\n"] {
        assert_eq!(dialogue.reply(line.as_bytes()), Answer::Keep);
    }
    assert_eq!(dialogue.reply(b"200 NOOP ok\r\n"), changed("216 EPSVEPRT"));
    assert_eq!(dialogue.reply(b"150 opening\r\n"), Answer::Keep);
    assert_eq!(dialogue.reply(b"226 done\r\n"), Answer::Keep);
    assert_eq!(
        dialogue.reply(b"227 x (1,2,3,4,4,1)\r\n"),
        changed("229 Entering Extended Passive Mode (|||1025|)")
    );
}

#[test]
fn after_auth_nothing_is_read_unless_the_server_refuses() {
    let mut dialogue = greeted();
    says(&mut dialogue, V6, "AUTH TLS\r\n");
    assert_eq!(says(&mut dialogue, V6, "EPSV\r\n"), Answer::Keep);
    dialogue.reply(b"530 no\r\n");
    assert_eq!(says(&mut dialogue, V6, "EPSV\r\n"), changed("PASV"));
    let mut dialogue = greeted();
    // It came in two segments.
    dialogue.unread_command(b"auth tls\r\n");
    dialogue.reply(b"234 Proceed\r\n");
    assert!(dialogue.is_transparent());
    assert_eq!(says(&mut dialogue, V6, "EPSV\r\n"), Answer::Keep);
}

#[test]
fn more_commands_than_are_remembered_do_not_confuse_a_passive_reply() {
    let mut dialogue = greeted();
    (0..20).for_each(|_| assert_eq!(says(&mut dialogue, V6, "NOOP\r\n"), Answer::Keep));
    says(&mut dialogue, V6, "EPSV\r\n");
    assert_ne!(dialogue.reply(b"227 x (1,2,3,4,4,1)\r\n"), Answer::Keep);
}

#[test]
fn before_the_greeting_nothing_is_changed_and_replies_find_their_commands_afterwards() {
    let mut dialogue = Dialogue::new();
    assert_eq!(dialogue.reply(b"120 wait\r\n"), Answer::Keep);
    for refused in ["EPRT |2|2001:db8::1|5001|\r\n", "PORT 10,0,0,1,19,137\r\n"] {
        assert_eq!(says(&mut dialogue, V6, refused), Answer::Refuse);
    }
    assert_eq!(says(&mut dialogue, V6, "EPSV\r\n"), Answer::Keep);
    dialogue.reply(b"220 ready\r\n");
    assert_eq!(says(&mut dialogue, V6, "ALGS STATUS64\r\n"), changed("NOOP"));
    for reply in ["500 no\r\n", "500 no\r\n", "229 Entering (|||1025|)\r\n"] {
        assert_eq!(dialogue.reply(reply.as_bytes()), Answer::Keep);
    }
    assert_eq!(dialogue.reply(b"200 ok\r\n"), changed("216 EPSVEPRT"));
}

#[test]
fn without_a_greeting_and_after_a_line_that_is_not_a_command_the_dialogue_ends() {
    for reply in ["421 busy\r\n", "230 come in\r\n", "530-no\r\n"] {
        let mut dialogue = Dialogue::new();
        dialogue.reply(reply.as_bytes());
        dialogue.reply(b"530 no\r\n");
        assert!(dialogue.is_transparent(), "{reply}");
    }
    for line in ["POST / HTTP/1.1\r\n", "\r\n", "XYZ\r\n", "PORT\t10,0,0,1,19,137\r\n"] {
        let mut dialogue = greeted();
        assert_eq!(says(&mut dialogue, V4, line), Answer::Keep);
        assert!(dialogue.is_transparent(), "{line}");
        assert_eq!(says(&mut dialogue, V4, "PORT 10,0,0,1,19,137\r\n"), Answer::Keep);
    }
    // AUTH was sent, and something that is not a command with it.
    let mut dialogue = greeted();
    says(&mut dialogue, V4, "AUTH TLS\r\n");
    says(&mut dialogue, V4, "\u{16}\u{3}\u{1}\n");
    dialogue.reply(b"530 no\r\n");
    assert!(dialogue.is_transparent());
    // A command that is too long, or not in ASCII, is a command.
    let mut dialogue = greeted();
    says(&mut dialogue, V4, &format!("STOR {}\r\n", "x".repeat(500)));
    says(&mut dialogue, V4, "STOR \u{e9}\r\n");
    assert!(dialogue.is_reading());
}
