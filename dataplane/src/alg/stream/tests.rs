use super::*;

fn text(line: &str) -> Text {
    Text::try_from(line.as_bytes()).unwrap()
}

/// "aaLINEbb" from 100 on, whose line became longer by two octets.
fn stream() -> Stream {
    let mut stream = Stream::new(100);
    assert_eq!(stream.advance(100, b"aaLINEbb"), Unread::Following(100, b"aaLINEbb"));
    assert!(stream.has_room());
    stream.change(102, 4, text("LONGER"));
    stream
}

#[test]
fn positions_map_there_and_back() {
    let stream = stream();
    for (sent, forwarded) in [(100, 100), (102, 102), (106, 108), (108, 110), (50, 50)] {
        assert_eq!((stream.forwarded(sent), stream.sent(forwarded)), (forwarded, sent));
    }
    // Inside the line: its start.
    assert_eq!(stream.forwarded(104), 102);
    assert_eq!([103, 107].map(|inside| stream.sent(inside)), [102, 102]);
}

#[test]
fn a_retransmission_gets_the_same_change_however_it_is_cut() {
    let stream = stream();
    let whole = b"aaLINEbb";
    for cut in 0..=8_usize {
        // As a receiver puts them together.
        let mut received = [0_u8; 10];
        for (from, part) in [(0, &whole[..cut]), (cut, &whole[cut..])] {
            let sequence = 100 + from as u32;
            let octets = stream.rewritten(sequence, part).unwrap_or_else(|| part.into());
            let at = (stream.forwarded(sequence) - 100) as usize;
            received[at..at + octets.len()].copy_from_slice(&octets);
        }
        assert_eq!(&received, b"aaLONGERbb", "{cut}");
    }
    assert_eq!(stream.rewritten(108, b"cc"), None);
    assert_eq!(stream.rewritten(100, b"aa"), None);
}

#[test]
fn what_passed_once_is_not_read_again_and_a_gap_is_seen() {
    let mut stream = stream();
    assert_eq!(stream.advance(100, b"aaLINEbb"), Unread::Nothing);
    assert_eq!(stream.advance(106, b"bbcc"), Unread::Following(108, b"cc"));
    assert_eq!(stream.advance(113, b"ee"), Unread::BehindGap(b"ee"));
    // The octets of the gap come late: what follows them has been forwarded.
    assert_eq!(stream.advance(110, b"ddd"), Unread::Nothing);
    assert_eq!(stream.advance(115, b"f"), Unread::Following(115, b"f"));
    // A segment from nowhere near changes nothing.
    assert_eq!(stream.advance(116 + (1 << 21), b"x"), Unread::Nothing);
    assert_eq!(stream.advance(116, b"g"), Unread::Following(116, b"g"));
}

#[test]
fn a_line_is_forgotten_for_another_once_it_is_acknowledged() {
    let mut stream = Stream::new(u32::MAX - 3);
    let mut at = u32::MAX - 3;
    for _ in 0..4 {
        stream.advance(at, b"AB");
        assert!(stream.has_room());
        stream.change(at, 2, text("ABC"));
        at = at.wrapping_add(2);
    }
    assert!(!stream.has_room());
    // More than was sent is not believed.
    stream.acknowledge(at.wrapping_add(1_000));
    assert!(!stream.has_room());
    // Positions wrap.
    let first = stream.forwarded(u32::MAX - 1);
    assert_eq!(first, u32::MAX);
    stream.acknowledge(first);
    assert!(stream.has_room());
    assert_eq!(stream.forwarded(at), at.wrapping_add(4));
    assert_eq!(stream.sent(at.wrapping_add(4)), at);
}

#[test]
fn what_is_cut_out_is_acknowledged_with_what_comes_before_it() {
    let mut stream = Stream::new(100);
    stream.advance(100, b"aaCUTbb");
    stream.change(102, 3, Text::new());
    for (sent, forwarded) in [(100, 100), (102, 102), (105, 102), (107, 104)] {
        assert_eq!(stream.forwarded(sent), forwarded);
    }
    assert_eq!([100, 101, 102, 104].map(|position| stream.sent(position)), [100, 101, 105, 107]);
    for (sequence, part, left) in
        [(100, &b"aaCUTbb"[..], &b"aabb"[..]), (102, b"CUT", b""), (103, b"UTbb", b"bb"), (101, b"aC", b"a")]
    {
        assert_eq!(stream.rewritten(sequence, part).as_deref(), Some(left), "{sequence}");
    }
}
