"""Programs that want to talk to anybody but `system` and `tools`."""

import os
import socket

import pytest

from tests.support.attack_range import ranges, unharmed

sandbox, field = ranges(), unharmed()

KINDS = [
    "AF_INET, socket.SOCK_STREAM",
    "AF_INET, socket.SOCK_DGRAM",
    "AF_INET, socket.SOCK_RAW",
    "AF_INET6, socket.SOCK_STREAM",
    "AF_UNIX, socket.SOCK_STREAM",
    "AF_UNIX, socket.SOCK_DGRAM",
    "AF_NETLINK, socket.SOCK_RAW",
    "AF_PACKET, socket.SOCK_RAW",
    "AF_VSOCK, socket.SOCK_STREAM",
    "AF_ALG, socket.SOCK_SEQPACKET",
]


@pytest.mark.parametrize("kind", KINDS)
def test_no_socket_can_be_made(field, kind):
    field.must_fail(f"attempt('socket', lambda: socket.socket(socket.{kind}))")


@pytest.mark.parametrize("kind", ["SOCK_DGRAM", "SOCK_SEQPACKET"])
def test_no_pair_can_be_made_that_could_be_turned_elsewhere(field, kind):
    field.must_fail(f"attempt('pair', lambda: socket.socketpair(socket.AF_UNIX, socket.{kind}))")


@pytest.mark.parametrize(
    "way",
    [
        "socket.create_connection(('127.0.0.1', 80), 1)",
        "socket.create_connection(('1.1.1.1', 53), 1)",
        "socket.create_server(('127.0.0.1', 0))",
        "__import__('urllib.request').request.urlopen('http://127.0.0.1/', timeout=1)",
    ],
)
def test_no_connection_can_be_made(field, way):
    field.must_fail(f"attempt('connect', lambda: {way})", by=("PermissionError 1", "URLError None"))


def test_no_name_can_be_looked_up(field):
    program = (
        "attempt('dns', socket.getaddrinfo, 'example.org', 80)\nattempt('host', socket.gethostbyname, 'example.org')"
    )
    field.must_fail(program, 2, by=("gaierror -3", "gaierror -2", "gaierror -11"))


def test_a_service_of_this_machine_hears_nothing(field):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        field.must_fail(f"attempt('tcp', lambda: socket.create_connection(('127.0.0.1', {port}), 1))")
        with pytest.raises(TimeoutError):
            server.accept()


@pytest.mark.parametrize("abstract", [True, False])
def test_a_unix_socket_of_the_worker_hears_nothing(field, tmp_path, abstract):
    address = f"\0maia-{os.getpid()}" if abstract else str(tmp_path / "door")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(address)
        server.settimeout(0.2)
        program = f"""
def by_a_new_socket():
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"hello", {address!r})

def by_its_own_socket():
    if libc.connect(3, ctypes.create_string_buffer(b"\\1\\0x"), 3) < 0:
        raise OSError(ctypes.get_errno(), "refused")

def by_a_pair():
    socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"hello", {address!r})

attempt("new", by_a_new_socket)
attempt("pair", by_a_pair)
attempt("own", by_its_own_socket)
channel = socket.socket(fileno=3)
attempt("message", lambda: channel.sendmsg([b"hello"], [], 0, {address!r}))
channel.detach()
"""
        field.must_fail(program, 4)
        with pytest.raises(TimeoutError):
            server.recv(10)


def test_no_descriptor_can_be_passed_to_the_worker(field):
    program = """
channel = socket.socket(fileno=3)
attempt("pass", lambda: socket.send_fds(channel, [b"x"], [0]))
attempt("take", lambda: socket.recv_fds(channel, 1, 1))
channel.detach()
"""
    field.must_fail(program, 2)


def test_threads_and_an_event_loop_still_work(field):
    program = """
import asyncio, concurrent.futures, numpy
async def work():
    return await asyncio.to_thread(lambda: int((numpy.ones((300, 300)) @ numpy.ones((300, 300)))[0, 0]))
print(asyncio.run(work()))
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    print(sum(pool.map(lambda n: n * n, range(100))))
"""
    result = field.attack(program)
    assert (result.error, result.output) == ("", "300\n328350\n")
