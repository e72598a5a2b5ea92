"""Tells the disagreements that are understood from those that are not: explain.py CONFIG.json < disagreements

Each rule below says in which the reference is not followed, and by which clause. What no rule explains is printed and
makes the exit status 1.
"""
import json
import sys


def icmp6_mtu(packet):
    """The MTU field of an ICMPv6 Packet Too Big, or None."""
    if packet[0] >> 4 != 6:
        return None
    at, number = 40, packet[6]
    while number in (0, 43, 60, 44) and at + 8 <= len(packet):
        number, at = packet[at], at + (8 if number == 44 else 8 + 8 * packet[at + 1])
    if number != 58 or at + 8 > len(packet) or packet[at] != 2:
        return None
    return int.from_bytes(packet[at + 4:at + 8], "big")


def is_unusable_mtu(row, config):
    """RFC 7915 5.2 has no answer for a Packet Too Big whose MTU leaves less than the 68 octets of RFC 791 3.2. The reference takes any
    IPv4 MTU for lawful there; but on the second pass of a hairpin it goes on with one choice of its own."""
    mtu = icmp6_mtu(bytes.fromhex(row["in"]))
    return mtu is not None and mtu < 68 + 28 and "hairpinned" in row["explanation"][0]


def payload4(packets):
    """The data of IPv4 fragments in order, or None if they leave a gap."""
    data = b""
    for packet in sorted(packets, key=lambda p: int.from_bytes(p[6:8], "big") & 0x1fff):
        if (int.from_bytes(packet[6:8], "big") & 0x1fff) * 8 != len(data) + start(packets):
            return None
        data += packet[20:]
    return data


def start(packets):
    """Offset of the first of some fragments."""
    return min(int.from_bytes(p[6:8], "big") & 0x1fff for p in packets) * 8


def is_shorter_cut(row, config):
    """RFC 791 3.2, fragmentation procedure: the rest is sent as it is once it fits the MTU; only the fragments before it are cut at a
    multiple of eight octets. The reference cuts the last one too."""
    sent = [bytes.fromhex(word) for word in row["out"] if word != "-"]
    wanted = [bytes.fromhex(result["bytes"]) for result in row["results"]]
    if not sent or len(sent) >= len(wanted) or any(p[0] != 0x45 for p in sent + wanted):
        return False
    fits = all(len(p) <= config["mtu4"] for p in sent)
    return fits and payload4(sent) is not None and payload4(sent) == payload4(wanted)


def is_third_reason(row, config):
    """A transport header that is cut short is dropped in silence (RFC 9293 3.1, RFC 768), whatever else is wrong with the packet. The
    reference looks for one other reason, not for two."""
    packet = bytes.fromhex(row["in"])
    return row["out"] == ["-"] and packet[0] >> 4 == 4 and packet[8] <= 1 and "source route" in row["explanation"][0]


RULES = [is_unusable_mtu, is_shorter_cut, is_third_reason]


def main():
    config = json.load(open(sys.argv[1]))
    unexplained = 0
    for line in sys.stdin:
        row = json.loads(line)
        rule = next((rule for rule in RULES if rule(row, config)), None)
        if rule:
            print("   packet %s: explained: %s" % (row["line"], " ".join(rule.__doc__.split())))
        else:
            unexplained += 1
            print("   packet %s: %s...\n      %s" % (row["line"], row["in"][:112], "; ".join(row["explanation"])[:400]))
    sys.exit(1 if unexplained else 0)


if __name__ == "__main__":
    main()
