"""G3: no socket that leads anywhere, no name resolved."""

from attempts import Group

GROUP = Group("network")

GROUP.each(
    "EPERM",
    tcp_to_loopback="socket.create_connection(('127.0.0.1', FACTS['port']), 2)",
    udp_to_loopback="socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', FACTS['port']))",
    listen="socket.create_server(('127.0.0.1', 0))",
    unix_by_path="socket.socket(socket.AF_UNIX).connect(FACTS['socket'])",
    unix_abstract="socket.socket(socket.AF_UNIX).connect('\\0' + FACTS['abstract'])",
    vsock="socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)",
    netlink="socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
    packet="socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)",
    kernel_crypto="socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)",
    http="import urllib.request as u; u.urlopen('http://127.0.0.1:%d/' % FACTS['port'], timeout=2)",
    asyncio_connection="import asyncio; asyncio.run(asyncio.open_connection('127.0.0.1', FACTS['port']))",
    descriptors_over_a_socket="""
import array
ours, theirs = socket.socketpair()
ours.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [READ, WRITE]))])
""",
    descriptors_from_a_socket="""
ours, theirs = socket.socketpair()
ours.recvmsg(16, socket.CMSG_SPACE(64))
""",
)

GROUP.add("every_family_and_type", "held", """
each("EPERM", *[((family, kind, protocol), "socket", family, kind, protocol)
     for family in range(48) for kind in (1, 2, 3, 5, 0x80801) for protocol in (0, 1, 255)])
""")

GROUP.add("other_pairs", "held", """
pair = ctypes.create_string_buffer(8)
cases = [(1, kind, 0) for kind in (0, 2, 3, 4, 5, 6, 10, 0x10001, 1 << 32 | 1)]
cases += [(family, 1, 0) for family in (0, 2, 10, 16, 17, 30, 38, 40, 1 << 32 | 1)]
cases += [(1, 1, 1), (1, 1, 1 << 32)]
each("EPERM", *[(case, "socketpair", *case, pair) for case in cases])
""")

GROUP.add("a_pair_leads_nowhere", "held", """
ours, theirs = socket.socketpair()
room, name = ctypes.create_string_buffer(256), socket.AF_UNIX.to_bytes(2, "little") + b"\\0" + FACTS["abstract"].encode()
fd = ours.fileno()
each("EPERM", ("bind", "bind", fd, name, len(name)), ("connect", "connect", fd, name, len(name)),
     ("listen", "listen", fd, 8), ("accept", "accept", fd, 0, 0), ("accept4", "accept4", fd, 0, 0, 0),
     ("shutdown", "shutdown", fd, 2), ("getpeername", "getpeername", fd, room, bytes([255, 0, 0, 0])),
     ("getsockopt", "getsockopt", fd, 1, 17, room, bytes([12, 0, 0, 0])), ("setsockopt", "setsockopt", fd, 1, 2, room, 4),
     ("sendmsg", "sendmsg", fd, room, 0), ("recvmsg", "recvmsg", fd, room, 0),
     ("sendmmsg", "sendmmsg", fd, room, 1, 0), ("recvmmsg", "recvmmsg", fd, room, 1, 0, 0))
""")

GROUP.add("flags_of_a_send", "held", """
ours, theirs = socket.socketpair()
fd, name = ours.fileno(), b"\\1\\0\\0" + FACTS["abstract"].encode()
flags = [1 << bit for bit in range(64) if 1 << bit != 0x4000] + [0x4001, 0x4000 | 1 << 40]
each("EPERM", *[(hex(flag), "sendto", fd, b"x", 1, flag, 0, 0) for flag in flags],
     ("to an address", "sendto", fd, b"x", 1, 0, name, len(name)))
""")

GROUP.add("flags_of_a_receive", "held", """
ours, theirs = socket.socketpair()
ours.send(b"x")
room = ctypes.create_string_buffer(256)
flags = [1 << bit for bit in range(64) if 1 << bit != 0x4000]
each("EPERM", *[(hex(flag), "recvfrom", theirs.fileno(), room, 1, flag, 0, 0) for flag in flags],
     ("whose is it", "recvfrom", theirs.fileno(), room, 1, 0, room, bytes([255, 0, 0, 0])))
""")

GROUP.add("interfaces_by_ioctl", "held", """
ours, theirs = socket.socketpair()
room = ctypes.create_string_buffer(4096)
each("EPERM", *[(hex(command), "ioctl", ours.fileno(), command, room) for command in range(0x8900, 0x89ff)])
""")

GROUP.add("own_pipes_as_sockets", "held", """
def send(fd):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=fd)
    try:
        return sock.send(b"x")
    finally:
        sock.detach()
each("ENOTSOCK EPERM", *[(fd, send, fd) for fd in range(5)])
""")

GROUP.add("resolve_a_name", "gaierror EPERM", "socket.getaddrinfo('localhost', 80)")
GROUP.add("resolve_another_way", "gaierror herror EPERM", "socket.gethostbyname('example.invalid')")
GROUP.add("interface_names", "EPERM", "socket.if_nameindex()")
