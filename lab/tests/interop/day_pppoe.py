"""One end of a PPPoE session (RFC 2516) in user space, for a kernel without PPP: its device is a TUN device.

client ETHERNET DEVICE: looks for a server again and again; the device exists while the session does, with the address that the server
assigns, and the default routes lead there.
server ETHERNET DEVICE OWN CLIENT: has one session at a time; CLIENT is the address that it assigns.
"""

import fcntl
import os
import random
import select
import socket
import struct
import subprocess
import sys
import time

DISCOVERY, SESSION = 0x8863, 0x8864
PADI, PADO, PADR, PADS, PADT = 0x09, 0x07, 0x19, 0x65, 0xA7
LCP, IPCP, IPV6CP, IPV4, IPV6 = 0xC021, 0x8021, 0x8057, 0x0021, 0x0057
REQUEST, ACK, NAK, REJECT, TERMINATE, TERMINATED, ECHO, REPLY = 1, 2, 3, 4, 5, 6, 9, 10
MTU = 1492
ECHO_INTERVAL, ECHO_FAILURES = 0.5, 3


def tun(name):
    """A TUN device without offloads; it goes when its file is closed."""
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    # linux/if_tun.h: TUNSETIFF; IFF_TUN | IFF_NO_PI.
    fcntl.ioctl(file, 0x400454CA, struct.pack("16sH", name.encode(), 0x1001))
    return file


def returned(tags):
    """AC-Cookie and Relay-Session-Id of an offer."""
    found = b""
    while len(tags) >= 4:
        kind, length = struct.unpack("!HH", tags[:4])
        found += tags[: 4 + length] if kind in (0x0104, 0x0110) else b""
        tags = tags[4 + length :]
    return found


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class End:
    def __init__(self, role, ethernet, device, own=None, client=None):
        self.role, self.ethernet, self.device = role, ethernet, device
        self.own, self.assigned = own, client
        self.sockets = {}
        for kind in (DISCOVERY, SESSION):
            self.sockets[kind] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(kind))
            self.sockets[kind].bind((ethernet, kind))
            self.sockets[kind].setblocking(False)
        self.mac = self.sockets[DISCOVERY].getsockname()[4]
        self.reset()

    def reset(self):
        self.number, self.peer, self.file = 0, None, None
        self.acked = {LCP: set(), IPCP: set(), IPV6CP: set()}
        self.address = "0.0.0.0" if self.role == "client" else self.own
        self.identifier = bytes([2, 0, 0, 0, 0, 0, 0, 1 if self.role == "client" else 2])
        self.missed, self.next, self.began = 0, time.monotonic(), time.monotonic()

    def frame(self, to, kind, code, number, payload):
        header = struct.pack("!HBBHH", kind, 0x11, code, number, len(payload))
        try:
            self.sockets[kind].send(to + self.mac + header + payload)
        except OSError:
            # The cable is pulled.
            pass

    def ppp(self, protocol, payload):
        self.frame(self.peer, SESSION, 0, self.number, struct.pack("!H", protocol) + payload)

    def control(self, protocol, code, number, payload=b""):
        self.ppp(protocol, struct.pack("!BBH", code, number, 4 + len(payload)) + payload)

    def options(self, protocol):
        if protocol == LCP:
            return struct.pack("!BBH", 1, 4, MTU)
        if protocol == IPCP:
            return struct.pack("!BB4s", 3, 6, socket.inet_aton(self.address))
        return struct.pack("!BB8s", 1, 10, self.identifier)

    def unknown(self, protocol, body):
        """Options that this end does not know: all but MRU and magic number, address, and identifier."""
        known = {LCP: (1, 5), IPCP: (3,), IPV6CP: (1,)}[protocol]
        found = b""
        while len(body) >= 2 and body[1] >= 2:
            found += b"" if body[0] in known else body[: body[1]]
            body = body[body[1] :]
        return found

    def discovered(self, frame):
        source, (code, number, length) = frame[6:12], struct.unpack("!BHH", frame[15:20])
        tags = frame[20 : 20 + length]
        if code == PADT and self.number == number and source == self.peer:
            self.end("PADT")
        elif self.role == "server" and code == PADI:
            self.frame(source, DISCOVERY, PADO, 0, tags + struct.pack("!HH", 0x0102, 4) + b"home")
        elif self.role == "server" and code == PADR:
            self.end("a new session")
            self.number, self.peer, self.began = random.randrange(1, 0xFFFF), source, time.monotonic()
            self.frame(source, DISCOVERY, PADS, self.number, tags)
        elif self.role == "client" and code == PADO and not self.number:
            # 5.3: with the cookie of the server, and what relays added.
            self.frame(source, DISCOVERY, PADR, 0, struct.pack("!HH", 0x0101, 0) + returned(tags))
        elif self.role == "client" and code == PADS and not self.number and number:
            self.number, self.peer, self.began = number, source, time.monotonic()

    def received(self, frame):
        number, length = struct.unpack("!HH", frame[16:20])
        if not self.number or number != self.number or frame[6:12] != self.peer:
            return
        self.missed = 0
        protocol, data = struct.unpack("!H", frame[20:22])[0], frame[22 : 20 + length]
        if protocol in (IPV4, IPV6):
            if self.file is not None:
                try:
                    os.write(self.file, data)
                except OSError:
                    pass
            return
        if protocol not in self.acked or len(data) < 4:
            return
        code, identifier, size = struct.unpack("!BBH", data[:4])
        body = data[4:size]
        if code == REQUEST:
            if self.role == "server" and protocol == IPCP and body[2:6] == bytes(4):
                self.control(protocol, NAK, identifier, struct.pack("!BB4s", 3, 6, socket.inet_aton(self.assigned)))
                return
            rejected = self.unknown(protocol, body)
            self.control(protocol, REJECT if rejected else ACK, identifier, rejected or body)
            if not rejected:
                self.acked[protocol].add("peer")
        elif code == ACK:
            self.acked[protocol].add("own")
        elif code == NAK and protocol == IPCP:
            self.address = socket.inet_ntoa(body[2:6])
            self.control(protocol, REQUEST, identifier + 1 & 0xFF, self.options(protocol))
        elif code == TERMINATE:
            self.control(protocol, TERMINATED, identifier)
            self.end("Terminate-Request")
        elif code == ECHO:
            # RFC 1661 5.8: the magic number of who sends it, which is 0 as none was agreed on.
            self.control(protocol, REPLY, identifier, bytes(4) + body[4:])
        self.settle()

    def settle(self):
        """The device exists when all protocols are open."""
        if self.file is not None or any(len(sides) < 2 for sides in self.acked.values()):
            return
        self.file = tun(self.device)
        ip("link", "set", self.device, "mtu", str(MTU), "up")
        if self.role == "client":
            ip("-4", "address", "add", self.address, "peer", "203.0.113.2", "dev", self.device)
            ip("-4", "route", "replace", "default", "dev", self.device)
            ip("-6", "route", "replace", "default", "dev", self.device)
        else:
            ip("-4", "address", "add", self.own, "peer", self.assigned, "dev", self.device)
            ip("-4", "route", "replace", "192.168.1.0/24", "dev", self.device)
            ip("-6", "route", "replace", "2001:db8:1::/64", "dev", self.device)
        print(f"session {self.number} is up", flush=True)

    def end(self, why):
        if self.number:
            print(f"session {self.number} has ended: {why}", flush=True)
        if self.file is not None:
            os.close(self.file)
        self.reset()

    def tick(self):
        now = time.monotonic()
        if now < self.next:
            return
        self.next = now + ECHO_INTERVAL
        if not self.number:
            if self.role == "client":
                self.frame(b"\xff" * 6, DISCOVERY, PADI, 0, struct.pack("!HH", 0x0101, 0))
            return
        if self.file is None:
            if now > self.began + 5:
                self.end("no agreement")
                return
            opened = len(self.acked[LCP]) == 2
            for protocol in (IPCP, IPV6CP) if opened else (LCP,):
                if "own" not in self.acked[protocol]:
                    self.control(protocol, REQUEST, 1, self.options(protocol))
            return
        self.missed += 1
        if self.missed > ECHO_FAILURES:
            self.frame(self.peer, DISCOVERY, PADT, self.number, b"")
            self.end("no answer to echo requests")
            return
        self.control(LCP, ECHO, 1, bytes(4))

    def run(self):
        while True:
            files = list(self.sockets.values()) + ([self.file] if self.file is not None else [])
            ready, _, _ = select.select(files, [], [], 0.05)
            for one in ready:
                try:
                    if one == self.file:
                        packet = os.read(one, 65536)
                        self.ppp(IPV4 if packet[0] >> 4 == 4 else IPV6, packet)
                    elif one is self.sockets[DISCOVERY]:
                        self.discovered(one.recv(2048))
                    elif one is self.sockets[SESSION]:
                        self.received(one.recv(2048))
                except OSError:
                    # The cable is pulled, or the device has gone.
                    pass
            self.tick()


End(*sys.argv[1:]).run()
