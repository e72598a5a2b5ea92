#!/usr/bin/env python3
"""A slow translator, read off RFC 7915, 6052, 7757 and 4884 clause by clause, to judge the engine by.

    reference.py --config CONFIG.json --compare < lines of "IN_HEX OUT_HEX..." or "IN_HEX -"

Each packet is translated once more here. What is wrong with it is collected, not decided by the first fault that is found: of several faults
any may be the one that the sender is told of, as RFC 7915 4.4 and 5.4 say SHOULD, but for those that RFC 1122 3.2.2 and RFC 4443 2.4 except. What an RFC leaves open stands in `open_to`: the packet may be dropped in silence there, too.
Identifications that a translator makes up are taken over from what is judged. Disagreements are printed, a line of JSON each.
"""
import argparse
import ipaddress
import json
import sys

TCP, UDP, DCCP, UDP_LITE = 6, 17, 33, 136
CHECKSUM_AT = {TCP: 16, UDP: 6, DCCP: 6, UDP_LITE: 6}
HEADER_OF = {TCP: 20, UDP: 8, DCCP: 12, UDP_LITE: 8}
ICMP4_ERRORS = {3, 4, 5, 11, 12}
# RFC 7915 4.2, the codes of Destination Unreachable; 2 and 4 become other types.
UNREACHABLE6 = {0: 0, 1: 0, 3: 4, 5: 0, 6: 0, 7: 0, 8: 0, 9: 1, 10: 1, 11: 0, 12: 0, 13: 1, 15: 1}
# RFC 7915 5.2, the same the other way.
UNREACHABLE4 = {0: 1, 1: 10, 2: 1, 3: 1, 4: 3}
# RFC 7915, figures 3 and 6.
POINTER6 = {0: 0, 1: 1, 2: 4, 3: 4, 8: 7, 9: 6}
POINTER6.update({at: 8 for at in range(12, 16)})
POINTER6.update({at: 24 for at in range(16, 20)})
POINTER4 = {0: 0, 1: 1, 4: 2, 5: 2, 6: 9, 7: 8}
POINTER4.update({at: 12 for at in range(8, 24)})
POINTER4.update({at: 16 for at in range(24, 40)})
# RFC 1191 7.1.
PLATEAUS = [65535, 32000, 17914, 8166, 4352, 2002, 1492, 1006, 508, 296, 68]
# RFC 4884 4: the types that may carry extensions, and the unit and the place of their length attribute.
EXTENSIBLE = {4: ({3, 11, 12}, 4, 5), 6: ({1, 3}, 8, 4)}
# What IPv6 reads as a header of its own (RFC 8200 4, RFC 4443): the gateway carries no such protocol over (docs/mechanisms/siit.md).
OF_THE_OTHER = {4: {0, 43, 44, 58, 60}, 6: {1}}
# RFC 7915 5.1.1: an extension header behind the Fragment header, ESP excepted.
EXTENSIONS = {0, 43, 44, 51, 60, 135, 139, 140}
NON_GLOBAL = [ipaddress.ip_network(text) for text in (
    "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.168.0.0/16 198.18.0.0/15 "
    "198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4").split()]
WELL_KNOWN = ipaddress.ip_network("64:ff9b::/96")
# RFC 1812 5.3.7, RFC 4291 2.5.
NO_HOST4 = [ipaddress.ip_network(text) for text in "0.0.0.0/8 127.0.0.0/8 224.0.0.0/4 240.0.0.0/4".split()]
NO_HOST6 = [ipaddress.ip_network(text) for text in "::/128 ::1/128 ff00::/8".split()]
# RFC 4291 2.5.6: what comes from it is not forwarded.
LINK_LOCAL = ipaddress.ip_network("fe80::/10")


def within(address, networks):
    return any(address in network for network in networks)


def number(octets):
    return int.from_bytes(octets, "big")


def ones_sum(octets):
    """RFC 1071: the one's complement sum, between 0 and 0xfffe."""
    octets = bytes(octets) + b"\0" * (len(octets) % 2)
    return sum(number(octets[at:at + 2]) for at in range(0, len(octets), 2)) % 0xffff


def closed(total):
    """The checksum for such a sum."""
    return (0xffff - total % 0xffff).to_bytes(2, "big")


class Silence(Exception):
    """Nothing can be read any further."""


class Unjudged(Exception):
    """For the gateway itself: no matter of translation."""


class Told:
    """An error that the sender of the packet is told of: type, code, and what may stand in the four octets behind the checksum."""

    def __init__(self, kind, codes, rest=(0,)):
        self.kind, self.codes, self.rest = kind, codes, rest


class Out:
    """A packet that leaves. `either` has the places of checksums for which 0 and 0xffff are the same; `free` those of octets that may be anything."""

    def __init__(self, octets, either=(), free=()):
        self.octets, self.either, self.free = bytes(octets), set(either), set(free)

    def behind(self, header):
        by = len(header)
        return Out(header + self.octets, {at + by for at in self.either}, {at + by for at in self.free})


class Header:
    """What both families' headers say."""

    def __init__(self, version):
        self.version, self.options, self.identification, self.is_fragment = version, 0, None, False
        self.offset, self.more, self.df = 0, False, False


def read4(octets, quoted=False):
    """RFC 791 3.1, RFC 1812 5.2.2. The header, and what is behind it; of a quote there may be less than the header says."""
    if len(octets) < 20 or octets[0] >> 4 != 4:
        raise Silence("no IPv4 header")
    h = Header(4)
    length, h.total = (octets[0] & 15) * 4, number(octets[2:4])
    if length < 20 or h.total < length or len(octets) < length or (h.total > len(octets) and not quoted):
        raise Silence("lengths that contradict each other")
    if not quoted and ones_sum(octets[:length]) != 0:
        raise Silence("a wrong header checksum")
    h.tos, h.hops, h.protocol = octets[1], octets[8], octets[9]
    h.identification, flags = number(octets[4:6]), number(octets[6:8])
    h.df, h.more, h.offset = bool(flags & 0x4000), bool(flags & 0x2000), flags & 0x1fff
    h.is_fragment = h.more or h.offset > 0
    h.source, h.destination = ipaddress.IPv4Address(octets[12:16]), ipaddress.IPv4Address(octets[16:20])
    h.options, h.length = octets[20:length], h.total - length
    return h, octets[length:h.total]


def read6(octets, quoted=False):
    """RFC 8200 3 and 4. The extension headers that RFC 7915 5.1 skips are skipped."""
    if len(octets) < 40 or octets[0] >> 4 != 6:
        raise Silence("no IPv6 header")
    h = Header(6)
    end = 40 + number(octets[4:6])
    if end > len(octets) and not quoted:
        raise Silence("lengths that contradict each other")
    h.total, octets = end, octets[:end]
    h.tos, h.hops = number(octets[0:2]) >> 4 & 0xff, octets[7]
    h.source, h.destination = ipaddress.IPv6Address(octets[8:24]), ipaddress.IPv6Address(octets[24:40])
    h.protocol, at, h.segments_left_at, h.skipped, h.is_cut_behind = octets[6], 40, None, 0, False
    while h.protocol in (0, 43, 44, 60) and h.identification is None:
        size = 8 if h.protocol == 44 else extension(octets, at)
        if size is None or at + size > len(octets):
            raise Silence("an extension header that is cut short")
        if h.protocol == 44:
            field = number(octets[at + 2:at + 4])
            h.offset, h.more, h.identification = field >> 3, bool(field & 1), number(octets[at + 4:at + 8])
            h.is_fragment = h.more or h.offset > 0
        else:
            h.skipped += 1
            look_at_routing(h, h.protocol, octets, at)
        h.protocol, at = octets[at], at + size
    h.before, h.length = at, end - at
    behind, protocol = at, h.protocol
    while h.identification is not None and h.offset == 0 and protocol in (0, 43, 60):
        # What follows a Fragment header is not translated (RFC 7915 5.1.1); what is wrong with it may be told instead.
        size = extension(octets, behind)
        if size is None:
            h.is_cut_behind = True
            break
        look_at_routing(h, protocol, octets, behind)
        protocol, behind = octets[behind], behind + size
    return h, octets[at:]


def extension(octets, at):
    """The length of the extension header there; None if it is cut short."""
    size = 8 + 8 * octets[at + 1] if at + 2 <= len(octets) else 0
    return size if 0 < size <= len(octets) - at else None


def is_structure(octets):
    """RFC 4884 7 and 8: version 2, a checksum, and objects that fill it."""
    if len(octets) < 8 or octets[0] >> 4 != 2 or octets[2:4] == b"\0\0" or ones_sum(octets) != 0:
        return False
    at = 4
    while at < len(octets):
        size = number(octets[at:at + 2]) if at + 2 <= len(octets) else 0
        if size < 4 or at + size > len(octets):
            return False
        at += size
    return True


def look_at_routing(h, protocol, octets, at):
    """RFC 7915 5.1: where the first Segments Left stands that is not zero."""
    if protocol == 43 and octets[at + 3] != 0 and h.segments_left_at is None:
        h.segments_left_at = at + 3


class Translation:
    """One packet by one configuration; `seen` is what the engine made of it."""

    def __init__(self, config, packet, seen):
        self.config, self.packet, self.seen = config, packet, seen
        self.faults, self.open, self.instead, self.is_told_of = [], None, [], False
        self.total = len(packet)
        self.prefix = ipaddress.ip_network(config["pool6"]) if config["pool6"] else None
        self.eam = [(ipaddress.ip_network(four), ipaddress.ip_network(six)) for four, six in config["eamt"]]
        self.own = {4: ipaddress.ip_address(config["own_v4"]), 6: ipaddress.ip_address(config["own_v6"])}

    # What is wrong with it.

    def fault(self, why, told=None):
        """The packet is dropped, in silence or with an error that its sender is told of."""
        self.faults.append((why, told))

    def open_to(self, why):
        self.open = self.open or why

    # Addresses.

    def row4(self, address):
        """RFC 7757 3.3.1: the longest match counts."""
        rows = [row for row in self.eam if address in row[0]]
        return max(rows, key=lambda row: row[0].prefixlen, default=None)

    def row6(self, address):
        rows = [row for row in self.eam if address in row[1]]
        return max(rows, key=lambda row: row[1].prefixlen, default=None)

    def is_forbidden(self, address):
        """RFC 6052 3.1."""
        return self.prefix == WELL_KNOWN and self.config["wkp_non_global"] == "drop" and within(address, NON_GLOBAL)

    def six(self, address, by_table=True):
        """RFC 7757 3.3.1, then RFC 6052 2.3. None: there is no mapping."""
        row = self.row4(address) if by_table else None
        if row:
            suffix = int(address) & int(row[0].hostmask)
            shift = 128 - row[1].prefixlen - (32 - row[0].prefixlen)
            return ipaddress.IPv6Address(int(row[1].network_address) | suffix << shift)
        if self.prefix is None:
            return None
        octets, at = bytearray(self.prefix.network_address.packed), self.prefix.prefixlen // 8
        for octet in address.packed:
            at += at == 8  # Octet u is left out.
            octets[at] = octet
            at += 1
        return ipaddress.IPv6Address(bytes(octets))

    def four(self, address):
        """RFC 7757 3.3.2, then RFC 6052 2.3: the address, and whether it comes from the prefix. None: there is no mapping."""
        row = self.row6(address)
        if row:
            shift = 128 - row[1].prefixlen - (32 - row[0].prefixlen)
            suffix = (int(address) & int(row[1].hostmask)) >> shift
            return ipaddress.IPv4Address(int(row[0].network_address) | suffix), False
        if self.prefix is None or address not in self.prefix:
            return None, False
        octets, at, found = address.packed, self.prefix.prefixlen // 8, b""
        while len(found) < 4:
            at += at == 8
            found += octets[at:at + 1]
            at += 1
        return ipaddress.IPv4Address(found), True

    def has_octet_u(self, address):
        """RFC 6052 2.2: bits 64 to 71 MUST be zero, where they are not of a /96."""
        by_prefix = not self.row6(address) and self.prefix is not None and address in self.prefix
        return by_prefix and self.prefix.prefixlen < 96 and address.packed[8] != 0

    # Transport.

    def transport(self, h, body, old, new, quoted):
        """RFC 7915 4.5, 5.5: the checksum follows the addresses, so that a wrong one stays wrong. `old` and `new` are addresses."""
        body, at = bytearray(body), CHECKSUM_AT.get(h.protocol)
        if at is None or h.offset > 0:
            return Out(body)
        if not quoted and len(body) < HEADER_OF[h.protocol]:
            # RFC 9293 3.1, RFC 768, RFC 4340 5.1, RFC 3828 3.1: there is no such segment.
            self.open_to("a transport header that is cut short")
        if len(body) < at + 2:
            return Out(body)
        was = number(body[at:at + 2])
        if h.protocol == UDP and was == 0:
            if h.version == 6 and (quoted or h.is_fragment):
                # RFC 8200 8.1 has no such datagram; the RFCs of translation say nothing.
                self.open_to("a UDP datagram over IPv6 without checksum")
                return Out(body)
            return Out(body, free={at, at + 1}) if quoted else self.udp_without_checksum(h, body, new)
        total = (0xffff - was) - ones_sum(b"".join(a.packed for a in old)) + ones_sum(b"".join(a.packed for a in new))
        body[at:at + 2] = closed(total)
        if h.protocol == UDP and number(body[at:at + 2]) == 0:
            body[at:at + 2] = b"\xff\xff"
        return Out(body, () if h.protocol == UDP else {at})

    def udp_without_checksum(self, h, body, new):
        """RFC 7915 4.5."""
        # No node may send such a datagram over IPv6 (RFC 8200 8.1); its sender is told nothing.
        prohibited = Told(3, {13}) if h.version == 4 else None
        if h.is_fragment:
            self.fault("the first fragment of a datagram without checksum", prohibited)
        elif self.config["udp_zero_checksum"] == "drop":
            self.fault("a datagram without checksum", prohibited)
        length = number(body[4:6])
        if length < 8 or length > len(body):
            if h.version == 4:
                self.fault("a UDP length that contradicts the packet")
            return Out(body)
        pseudo = b"".join(a.packed for a in new) + length.to_bytes(4, "big") + b"\0\0\0\x11"
        body[6:8] = closed(ones_sum(pseudo + body[:length]))
        if body[6:8] == b"\0\0":
            body[6:8] = b"\xff\xff"
        return Out(body)

    # ICMP.

    def icmp(self, h, body, source, destination, quoted=False, simple=False):
        """RFC 7915 4.2, 4.3, 5.2, 5.3: an ICMP message of either family, for these addresses."""
        echo = {8: 128, 0: 129} if h.version == 4 else {128: 8, 129: 0}
        if len(body) < 8 and not quoted:
            self.fault("an ICMP message that is cut short")
            return Out(body)
        if len(body) < 4:
            # As far as it goes, which the RFCs say nothing of.
            self.open_to("a quoted ICMP message without its checksum")
            return Out(bytes(echo.get(kind, kind) for kind in body[:1]) + body[1:], free={2, 3} if len(body) > 2 else ())
        kind, code = body[0], body[1]
        if kind in echo:
            return self.echo(h, body, echo[kind], source, destination)
        is_error = kind in ICMP4_ERRORS if h.version == 4 else kind < 128
        if quoted:
            # RFC 7915 4.3, 5.3: it stops at the first embedded header.
            raise Silence("an error in a quote" if is_error else "a quoted message without counterpart")
        if not is_error or len(body) < 8:
            self.fault("no counterpart")
            return Out(body)
        if ones_sum(self.pseudo(h, len(body)) + body) != 0:
            self.fault("a wrong ICMP checksum")
        quote, extension = self.split(h.version, kind, body)
        try:
            q, inner = (read4 if h.version == 4 else read6)(quote, quoted=True)
            head = self.error_head4(body, q) if h.version == 4 else self.error_head6(body, q)
            inner = self.quote4(q, inner, simple) if h.version == 4 else self.quote6(q, inner)
        except Silence as why:
            self.fault(str(why))
            return Out(body)
        return self.joined(10 - h.version, head, inner, extension, (source, destination))

    @staticmethod
    def pseudo(h, length):
        if h.version == 4:
            return b""
        return h.source.packed + h.destination.packed + length.to_bytes(4, "big") + b"\0\0\0\x3a"

    def echo(self, h, body, kind, source, destination):
        """The checksum follows the type and the pseudo-header, of which IPv4 has none."""
        length = h.length
        new = source.packed + destination.packed + length.to_bytes(4, "big") + b"\0\0\0\x3a" if h.version == 4 else b""
        total = 0xffff - number(body[2:4]) - ones_sum(self.pseudo(h, length)) - ones_sum(body[:2])
        total += ones_sum(new) + ones_sum(bytes([kind, body[1]]))
        return Out(bytes([kind, body[1]]) + closed(total) + body[4:], {2})

    @staticmethod
    def split(version, kind, body):
        """RFC 4884 4: the packet in an error, of 128 octets at least, and the extension behind it, if the length attribute tells of one. RFC 7915 4.2 and
        5.2: it is opaque. Where what the attribute tells of is no structure (7, 8), one is looked for at half the length and at octet 128 (5.5)."""
        kinds, unit, at = EXTENSIBLE[version]
        length, rest = body[at] * unit, body[8:]
        told = (rest[:length], rest[length:]) if 128 <= length <= len(rest) and kind in kinds else (rest, b"")
        if kind not in kinds or is_structure(told[1]):
            return told
        for place in (length // 2, 128):
            if place >= 128 and is_structure(rest[place:]):
                return rest[:place], rest[place:]
        return told

    def error_head4(self, body, q):
        """RFC 7915 4.2: type, code and the four octets behind the checksum."""
        kind, code, mtu = body[0], body[1], number(body[6:8])
        if kind == 3 and code in UNREACHABLE6:
            return 1, UNREACHABLE6[code], 0
        if kind == 3 and code == 2:
            return 4, 1, 6
        if kind == 3 and code == 4:
            if mtu == 0:
                mtu = next((plateau for plateau in PLATEAUS if plateau < q.total and plateau >= 1280), 0)
            fits = min(mtu + 20, self.config["mtu6"], self.config["mtu4"] + 20)
            return 2, 0, max(1280, fits)
        if kind == 11:
            return 3, code, 0
        if kind == 12 and code in (0, 2) and body[4] in POINTER6:
            return 4, 0, POINTER6[body[4]]
        raise Silence("an error without counterpart")

    def error_head6(self, body, q):
        """RFC 7915 5.2, the same."""
        kind, code, value = body[0], body[1], number(body[4:8])
        if kind == 1 and code in UNREACHABLE4:
            return 3, UNREACHABLE4[code], 0
        if kind == 2:
            lost = 28 if q.identification is not None else 20
            mtu = min(value - lost, self.config["mtu4"], self.config["mtu6"] - lost)
            if mtu < 68:
                # RFC 791 3.2: there is no link of less.
                self.open_to("a Packet Too Big of less than any IPv4 link carries")
                mtu = 68 if mtu < 68 else mtu
            return 3, 4, mtu
        if kind == 3:
            return 11, code, 0
        if kind == 4 and code == 0 and value in POINTER4:
            return 12, 0, POINTER4[value] << 24
        if kind == 4 and code == 1:
            return 3, 2, 0
        raise Silence("an error without counterpart")

    def quote4(self, q, inner, simple):
        """RFC 7915 4.3: like any packet, but for its TTL; RFC 7757 4.2.1, rule 2."""
        source, destination = self.six(q.source), self.six(q.destination, by_table=not simple)
        return self.quoted(q, inner, source, destination, simple)

    def quote6(self, q, inner):
        if q.segments_left_at is not None:
            self.open_to("a quoted routing header with segments left")
        if q.identification is not None and q.protocol in EXTENSIONS:
            self.open_to("a quoted extension header behind the Fragment header")
        if self.has_octet_u(q.source) or self.has_octet_u(q.destination):
            self.open_to("octet u of a quoted address")
        return self.quoted(q, inner, self.four(q.source)[0], self.four(q.destination)[0], False)

    def quoted(self, q, inner, source, destination, simple):
        if source is None or destination is None:
            raise Silence("a quoted address without mapping")
        if q.version == 4:
            by_prefix = [q.source] * (self.row4(q.source) is None) + [q.destination] * (simple or self.row4(q.destination) is None)
        else:
            by_prefix = [four for four, six in ((source, q.source), (destination, q.destination)) if self.row6(six) is None]
        if any(map(self.is_forbidden, by_prefix)):
            # RFC 6052 3.1 speaks of packets; it says nothing of those in errors.
            self.open_to("a non-global address in a quote")
        if q.protocol in OF_THE_OTHER[q.version] or q.protocol == 2:
            self.open_to("a quoted protocol that the other family reads as a header")
        is_icmp = q.protocol == (1 if q.version == 4 else 58)
        if is_icmp and q.is_fragment:
            self.open_to("a quoted fragment of an ICMP message")
        if is_icmp and q.offset == 0:
            payload = self.icmp(q, inner, source, destination, quoted=True)
        else:
            payload = self.transport(q, inner, (q.source, q.destination), (source, destination), quoted=True)
        header, free = self.header(q, source, destination, q.hops, q.length)
        return Out(header + payload.octets, {at + len(header) for at in payload.either},
                   {at + len(header) for at in payload.free} | free)

    def joined(self, version, head, inner, extension, addresses):
        """An error of `version` about `inner`, as long as errors are at most: RFC 4443 2.4 (c), RFC 1812 4.3.2.3."""
        kind, code, rest = head
        kinds, unit, at = EXTENSIBLE[version]
        if kind not in kinds:
            extension = b""
        room = 1280 - 48 if version == 6 else 576 - 28
        quote, attribute = inner.octets, 0
        if extension:
            most = (room - len(extension)) // unit * unit
            if most < 128:
                extension = b""
            else:
                quote = quote[:min(most, 255 * unit)]
                quote += b"\0" * (max(128, -(-len(quote) // unit) * unit) - len(quote))
                attribute = len(quote) // unit
        if not extension:
            quote = quote[:room]
        message = bytearray([kind, code, 0, 0]) + rest.to_bytes(4, "big") + quote + extension
        if attribute:
            message[at] = attribute
        source, destination = addresses
        pseudo = source.packed + destination.packed + len(message).to_bytes(4, "big") + b"\0\0\0\x3a"
        message = Out(message, {at + 8 for at in inner.either}, {at + 8 for at in inner.free if at < len(quote)})
        self.adopt(message, 20 if version == 4 else 40)
        total = ones_sum((pseudo if version == 6 else b"") + message.octets)
        message.octets = message.octets[:2] + closed(total) + message.octets[4:]
        message.either = {at for at in message.either if at + 2 <= len(message.octets)} | {2}
        return message

    def adopt(self, out, by):
        """Takes free octets over from what is judged, so that the checksum over them can be told."""
        if len(self.seen) == 1 and len(self.seen[0]) == len(out.octets) + by:
            seen = self.seen[0][by:]
            either = [at for at in out.either if seen[at:at + 2] in (b"\0\0", b"\xff\xff") and out.octets[at:at + 2] in (b"\0\0", b"\xff\xff")]
            take = out.free | {at + more for at in either for more in (0, 1)}
            out.octets = bytes(seen[at] if at in take else octet for at, octet in enumerate(out.octets))

    # Headers.

    def header(self, h, source, destination, hops, length, fragment=None):
        """RFC 7915 4.1, 5.1, 5.1.1: the header of the other family, and the places of its free octets. `fragment`: offset and M."""
        if fragment is None and h.is_fragment:
            fragment = (h.offset, h.more)
        if h.version == 4:
            protocol = 58 if h.protocol == 1 else h.protocol
            extra = b""
            if fragment is not None:
                extra = bytes([protocol, 0]) + (fragment[0] << 3 | fragment[1]).to_bytes(2, "big") + h.identification.to_bytes(4, "big")
                protocol = 44
            tos = h.tos if self.config["traffic_class"] == "copy" else self.config["traffic_class"]
            start = (6 << 28 | tos << 20).to_bytes(4, "big") + (length + len(extra)).to_bytes(2, "big")
            return start + bytes([protocol, hops]) + source.packed + destination.packed + extra, set()
        protocol = 1 if h.protocol == 58 else h.protocol
        tos = h.tos if self.config["tos"] == "copy" else self.config["tos"]
        total = 20 + length
        if total > 65535:
            raise Silence("longer than IPv4 can say")
        is_of_sender = h.identification is not None
        flags = 0 if is_of_sender or fragment is not None or total <= 1260 else 0x4000
        if fragment is not None:
            flags = fragment[1] << 13 | fragment[0]
        identification = h.identification & 0xffff if is_of_sender else 0
        header = bytearray([0x45, tos]) + total.to_bytes(2, "big") + identification.to_bytes(2, "big") + flags.to_bytes(2, "big")
        header += bytes([hops, protocol, 0, 0]) + source.packed + destination.packed
        header[10:12] = closed(ones_sum(header))
        return bytes(header), set() if is_of_sender else {4, 5, 10, 11}

    # Whole packets.

    def is_error(self, h, body):
        if h.offset > 0 or not body:
            return False
        return body[0] in ICMP4_ERRORS if (h.version, h.protocol) == (4, 1) else (h.version, h.protocol) == (6, 58) and body[0] < 128

    def common_faults(self, h, body, second=False):
        """What is checked of both families: hops (but for the other half of a hairpin), source, destination, protocol."""
        if h.destination == self.own[h.version]:
            raise Unjudged
        if not second:
            self.total = h.total
            nobody = within(h.source, NO_HOST4 + NO_HOST6) or h.source in LINK_LOCAL or within(h.destination, NO_HOST4 + NO_HOST6)
            is_redirect = h.version == 6 and h.protocol == 58 and body[:1] == b"\x89"
            self.is_told_of = not (nobody or h.offset > 0 or is_redirect or self.is_error(h, body))
        no_host = NO_HOST4 if h.version == 4 else NO_HOST6
        if within(h.source, no_host) and not (h.version == 4 and self.is_error(h, body)):
            self.fault("no host's source address")
        if h.source in LINK_LOCAL:
            self.fault("a source of the link")
        if within(h.destination, no_host):
            self.fault("no host's destination address")
        if h.hops <= 1 and not second:
            self.fault("hops", Told(11 if h.version == 4 else 3, {0}))
        if h.protocol in OF_THE_OTHER[h.version] or (h.version, h.protocol) == (4, 2):
            self.fault("a protocol that the other family reads as a header, or IGMP")

    def unreachable(self, h):
        """The RFCs leave open how a sender is told of an address without mapping."""
        return Told(3, {0, 1, 13}) if h.version == 4 else Told(1, {0, 1, 3})

    def from4(self, packet, simple=False, second=False):
        """RFC 7915 4. `second`: the other half of a hairpin, RFC 7757 4.2.2."""
        h, body = read4(packet)
        self.common_faults(h, body, second)
        if self.has_source_route(h.options):
            self.fault("a source route that has not run out", Told(3, {5}))
        is_error = self.is_error(h, body)
        by_table = not simple
        if simple and is_error:
            # RFC 7757 4.2.1, rule 3.
            quote = body[8:]
            by_table = not (len(quote) >= 20 and quote[16:20] == h.source.packed)
        source, destination = self.six(h.source, by_table), self.six(h.destination)
        if source is None and is_error:
            # RFC 6791 3 for the other family, which no RFC asks for.
            self.open_to("an error from an address without mapping")
            source = self.own[6]
        for address, mapped in ((h.source, source), (h.destination, destination)):
            if mapped is None:
                self.fault("an address without mapping", self.unreachable(h))
            by_row = self.row4(address) and (by_table or address is h.destination)
            if not by_row and self.is_forbidden(address):
                if is_error and address is h.source:
                    # RFC 7915 4.1 lets illegal sources of errors pass, RFC 6052 3.1 does not.
                    self.open_to("an error from a non-global address")
                else:
                    self.fault("a non-global address", self.unreachable(h))
        if source is None or destination is None:
            raise Silence("no address")
        hops = h.hops if second else max(h.hops, 1) - 1
        if h.protocol == 1:
            if h.is_fragment:
                self.fault("a fragment of an ICMP message")
                raise Silence("it has no counterpart")
            payload = self.icmp(h, body, source, destination, simple=simple)
        else:
            payload = self.transport(h, body, (h.source, h.destination), (source, destination), quoted=False)
        return self.fit6(h, payload, source, destination, hops)

    def fit6(self, h, payload, source, destination, hops):
        """RFC 7915 4.1: what the next link does not carry is refused if DF is set, and fragmented if not."""
        length, extra = len(payload.octets), 8 if h.is_fragment else 0
        mtu, lowest = self.config["mtu6"], min(self.config["lowest_ipv6_mtu"], self.config["mtu6"])
        if h.df and 40 + extra + length > mtu:
            self.fault("too big", Told(3, {4}, {mtu - 20 - extra, mtu - 20 - extra + len(h.options), mtu - 20}))
            return []
        if h.df or 40 + extra + length <= lowest:
            return [payload.behind(self.header(h, source, destination, hops, length)[0])]
        outs, at = [], 0
        while at < length:
            room = lowest - 48
            last = length - at <= room
            part = payload.octets[at:] if last else payload.octets[at:at + room // 8 * 8]
            header, _ = self.header(h, source, destination, hops, len(part), (h.offset + at // 8, h.more or not last))
            outs.append(Out(header + part, {one - at + 48 for one in payload.either if at <= one < at + len(part)}))
            at += len(part)
        return outs

    @staticmethod
    def has_source_route(options):
        """RFC 791 3.1: loose or strict, with a pointer that is not behind its end."""
        at = 0
        while at < len(options) and options[at] != 0:
            if options[at] == 1:
                at += 1
                continue
            if at + 1 >= len(options) or options[at + 1] < 2:
                return False
            if options[at] in (131, 137) and at + 2 < len(options) and options[at + 2] <= options[at + 1]:
                return True
            at += options[at + 1]
        return False

    def from6(self, packet):
        """RFC 7915 5."""
        h, body = read6(packet)
        self.common_faults(h, body)
        if h.segments_left_at is not None:
            self.fault("a routing header with segments left", Told(4, {0}, {h.segments_left_at}))
        if h.identification is not None and h.protocol in EXTENSIONS:
            self.fault("an extension header behind the Fragment header", Told(1, {1}))
        if h.is_cut_behind:
            self.fault("an extension header that is cut short")
        if h.skipped > 4:
            self.open_to("many extension headers")
        is_error = self.is_error(h, body)
        (source, _), (destination, by_prefix) = self.four(h.source), self.four(h.destination)
        for address in (h.source, h.destination):
            if self.has_octet_u(address):
                self.fault("octet u")
        if source is None and is_error:
            # RFC 6791 3: an address of the pool, or else the translator's own.
            pool = [ipaddress.IPv4Address(text) for text in self.config["rfc6791_v4"]] or [self.own[4]]
            seen = self.seen[0] if self.seen else b""
            chosen = [address for address in pool if seen[12:16] == address.packed or self.six(address, False).packed == seen[8:24]] if self.prefix else \
                [address for address in pool if seen[12:16] == address.packed]
            source = (chosen or pool)[0]
        for address, mapped in ((h.source, source), (h.destination, destination)):
            if mapped is None:
                self.fault("an address without mapping", self.unreachable(h))
            elif self.is_forbidden(mapped) and address in WELL_KNOWN and not self.row6(address):
                self.fault("a non-global address", self.unreachable(h))
        if source is None or destination is None:
            raise Silence("no address")
        if within(source, NO_HOST4) and not is_error:
            self.fault("no host's source address")
        if within(destination, NO_HOST4):
            self.fault("no host's destination address")
        if h.protocol == 58:
            if h.is_fragment:
                self.fault("a fragment of an ICMP message")
                raise Silence("it has no counterpart")
            payload = self.icmp(h, body, source, destination)
        else:
            payload = self.transport(h, body, (h.source, h.destination), (source, destination), quoted=False)
        hops = max(h.hops, 1) - 1
        if self.config["hairpin"] == "intrinsic" and self.turns(h, body, destination, by_prefix, is_error):
            return self.hairpin(h, payload, source, destination, hops)
        if destination == self.own[4]:
            raise Unjudged
        return self.fit4(h, payload, source, destination, hops, is_error)

    def turns(self, h, body, destination, by_prefix, is_error):
        """RFC 7757 4.2.2: condition sets A and B."""
        if not is_error:
            return by_prefix and self.row4(destination) is not None
        if len(body) < 8:
            return False
        try:
            q, _ = read6(self.split(6, body[0], body)[0], quoted=True)
        except Silence:
            return False
        source, from_prefix = self.four(q.source)
        return from_prefix and self.row4(source) is not None

    def hairpin(self, h, payload, source, destination, hops):
        header, free = self.header(h, source, destination, hops, len(payload.octets))
        if self.faults:
            return []
        told = len(self.faults)
        outs = self.from4(header + payload.octets, simple=True, second=True)
        # A sender over IPv6 gets an ICMPv6 error.
        for at in range(told, len(self.faults)):
            why, said = self.faults[at]
            if why == "too big":
                self.faults[at] = (why, Told(2, {0}, {self.config["mtu6"] + more for more in (0, h.before - 40)}))
            elif why == "hops":
                self.faults[at] = (why, Told(3, {0}))
            elif said is not None:
                self.faults[at] = (why, Told(1, {0, 1, 3}))
        return outs

    def fit4(self, h, payload, source, destination, hops, is_error):
        """RFC 7915 5.1.1: what every IPv6 link carries, or is a fragment, is fragmented; the sender of anything else is told, but of an error."""
        mtu, length = self.config["mtu4"], len(payload.octets)
        if 20 + length <= mtu:
            header, free = self.header(h, source, destination, hops, length)
            out = payload.behind(header)
            out.free |= free
            return [out]
        if h.total > 1280 and not is_error:
            lost = h.before - 40
            told = Told(2, {0}, {max(1280, mtu + 20), max(1280, mtu + 20 + lost)})
            if h.identification is None:
                self.fault("too big", told)
                return []
            # DF is clear in IPv4, and an IPv6 router would tell of it: RFC 7915 1.4 knows both.
            self.instead.append(told)
        outs, at = [], 0
        while at < length:
            last = length - at <= mtu - 20
            part = payload.octets[at:] if last else payload.octets[at:at + (mtu - 20) // 8 * 8]
            header, free = self.header(h, source, destination, hops, len(part), (h.offset + at // 8, h.more or not last))
            outs.append(Out(header + part, {one - at + 20 for one in payload.either if at <= one < at + len(part)}, free))
            at += len(part)
        return outs

    # The judgement.

    def is_told(self, told):
        """Whether what was seen is this error, about this packet, from the gateway to its sender (RFC 792, RFC 4443 2.4, RFC 1812 4.3.2)."""
        if len(self.seen) != 1 or told is None:
            return False
        version, out = self.packet[0] >> 4, self.seen[0]
        try:
            h, body = (read4 if version == 4 else read6)(out)
        except Silence:
            return False
        source = self.packet[12:16] if version == 4 else self.packet[8:24]
        quote = body[8:]
        return (h.source == self.own[version] and h.destination.packed == source and h.protocol == (1 if version == 4 else 58)
                and len(body) >= 8 and ones_sum(self.pseudo(h, len(body)) + body) == 0
                and body[0] == told.kind and body[1] in told.codes and number(body[4:8]) in told.rest
                and self.packet.startswith(quote) and len(quote) >= min(self.total, 28 if version == 4 else 48)
                and len(out) <= (576 if version == 4 else 1280))

    def is_sent(self, outs):
        """Whether what was seen is this, but for identifications, which are one and the same."""
        if len(outs) != len(self.seen) or len({seen[4:6] for seen, out in zip(self.seen, outs) if 4 in out.free}) > 1:
            return False
        return all(self.is_same(out, seen) for out, seen in zip(outs, self.seen))

    @staticmethod
    def is_same(out, seen):
        if len(out.octets) != len(seen):
            return False
        if 10 in out.free and ones_sum(seen[:20]) != 0:
            return False
        same = bytearray(out.octets)
        for at in out.free:
            same[at] = seen[at]
        for at in out.either:
            if {bytes(same[at:at + 2]), bytes(seen[at:at + 2])} <= {b"\0\0", b"\xff\xff"}:
                same[at:at + 2] = seen[at:at + 2]
        return bytes(same) == bytes(seen)

    def judge(self):
        """None if what was seen is right, or else what is wrong with it; and what was expected."""
        try:
            outs = self.from4(self.packet, self.config["hairpin"] == "simple") if self.packet[0] >> 4 == 4 else self.from6(self.packet)
        except Silence as why:
            outs = []
            self.faults.append((str(why), None))
        if self.open and not self.seen:
            return None, outs
        if not self.faults:
            if any(self.is_told(told) for told in self.instead):
                return None, outs
            return (None if self.is_sent(outs) else "it should have been translated%s" % (self.open and ", or not: " + self.open or "")), outs
        if any(self.is_told(told) for _, told in self.faults):
            return None, []
        if not self.seen:
            may_be_silent = not self.is_told_of or any(told is None for _, told in self.faults)
            return None if may_be_silent else "its sender should have been told: " + "; ".join(why for why, _ in self.faults), []
        return "it should have been dropped: " + "; ".join(why for why, _ in self.faults), []


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--config", required=True)
    arguments.add_argument("--compare", action="store_true", required=True)
    config = json.load(open(arguments.parse_args().config))
    compared = unjudged = disagreements = 0
    for compared, line in enumerate(sys.stdin, 1):
        words = line.split()
        seen = [bytes.fromhex(word) for word in words[1:] if word != "-"]
        try:
            wrong, outs = Translation(config, bytes.fromhex(words[0]), seen).judge()
        except Unjudged:
            unjudged += 1
            continue
        if wrong:
            disagreements += 1
            results = [{"bytes": out.octets.hex()} for out in outs]
            print(json.dumps({"line": compared, "in": words[0], "out": words[1:], "explanation": [wrong], "results": results}))
    print("%d packets compared, %d of them for the gateway itself, %d disagreements" % (compared, unjudged, disagreements), file=sys.stderr)


if __name__ == "__main__":
    main()
