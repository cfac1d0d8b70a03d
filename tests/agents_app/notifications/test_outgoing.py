"""Requests to other hosts: the address is checked first and kept; slow answers are cut off."""

import asyncio
import socket
import time
from ipaddress import ip_address

import pytest

from agents_app.notifications import outgoing
from agents_app.notifications.outgoing import (
    Blocked,
    OutgoingReply,
    Unreachable,
    is_open,
    post,
    read_target,
)
from tests.agents_app.receiver import Receiver, receiving

INSIDE = [
    *("127.0.0.1", "127.8.8.8", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "192.168.1.1"),
    *("169.254.169.254", "100.64.0.1", "100.100.100.200", "192.0.0.192", "198.18.0.1"),
    *("224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "168.63.129.16"),
    *("192.0.2.1", "203.0.113.1", "192.88.99.1"),
    *("::", "::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "fe80::1", "fec0::1"),
    *("fc00::1", "fd00:ec2::254", "ff02::1", "64:ff9b::7f00:1", "64:ff9b::8.8.8.8"),
    *("64:ff9b:1::1", "2002:7f00:1::", "2001::1", "2001:db8::1", "100::1", "3fff::1"),
]
OPEN = ["8.8.8.8", "1.1.1.1", "140.82.112.3", "2606:4700:4700::1111", "2a00:1450:4001::1"]


@pytest.mark.parametrize("text", INSIDE)
def test_an_address_that_leads_inside_is_not_open(text):
    assert not is_open(ip_address(text))


@pytest.mark.parametrize("text", OPEN)
def test_an_address_of_the_internet_is_open(text):
    assert is_open(ip_address(text))


# --- by its looks ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hooks.example",
        "//hooks.example/x",
        "ftp://hooks.example/",
        "file:///etc/passwd",
        "gopher://hooks.example/",
        "https://user:password@hooks.example/",
        "https://user@hooks.example/",
        "https://@hooks.example/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://127.0.0.1.1/",
        "http://[fe80::1%25eth0]/",
        "http://[::1/",
        "http://hooks.example:99999/",
        "http://hooks.example:22/",
        "http://hooks.example:0/",
        "http://hooks.example\\@evil.example/",
        "http://hooks.example/\r\nX-Evil: 1",
        "http://hooks.example/ x",
        "http://höoks.example/",
        "http:///path",
        "http://-/",
        "http://" + "x" * 3000,
    ],
)
@pytest.mark.fault("F75")
def test_a_url_that_is_odd_is_refused_by_its_looks(url):
    with pytest.raises(Blocked):
        read_target(url)


def test_what_people_write_is_read():
    target = read_target("https://Hooks.Example.:8443/a/b?c=d#e")
    assert (target.host, target.port, target.path) == ("hooks.example", 8443, "/a/b?c=d")
    assert target.host_header == "hooks.example:8443"
    assert read_target("http://hooks.example").path == "/"


def test_a_port_of_other_services_is_only_for_hosts_that_were_named():
    assert read_target("http://mail.lan:25/", {"mail.lan:25"}).trusted
    assert read_target("http://mail.lan:25/", {"mail.lan"}).trusted
    with pytest.raises(Blocked):
        read_target("http://mail.lan:25/", {"mail.lan:26", "other.lan"})


# --- where it leads -------------------------------------------------------------------------


class Names:
    """What the world's name servers say, one answer after the other."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, host: str, port: int, *_: object, **__: object) -> list[object]:
        self.asked.append(host)
        addresses = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [
            (socket.AF_INET6 if ":" in address else socket.AF_INET, 1, 6, "", (address, port))
            for address in addresses
        ]


@pytest.fixture
def names(monkeypatch):
    def say(*answers: list[str]) -> Names:
        fake = Names(*answers)
        monkeypatch.setattr(socket, "getaddrinfo", fake)
        return fake

    return say


@pytest.fixture
def receiver():
    with receiving() as found:
        yield found


def send(url: str, *trusted: str) -> OutgoingReply:
    return asyncio.run(post(url, b"{}", {"Content-Type": "application/json"}, trusted))


@pytest.mark.parametrize("address", INSIDE)
@pytest.mark.fault("F75")
def test_a_name_that_leads_inside_is_not_followed(names, receiver: Receiver, monkeypatch, address):
    # If the guard fails, the test must still not send a request to another host.
    monkeypatch.setattr(outgoing, "_send_to_first", None)
    names([address])
    with pytest.raises(Blocked, match="DROVER_OUTGOING_HOSTS"):
        send(f"http://hooks.example:{receiver.port}/")
    assert receiver.requests == []


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "[::]", "0.0.0.0", "[::ffff:127.0.0.1]"])
@pytest.mark.fault("F75")
def test_an_address_that_leads_inside_is_not_followed(receiver: Receiver, host):
    with pytest.raises(Blocked):
        send(f"http://{host}:{receiver.port}/")
    assert receiver.requests == []


def test_localhost_by_its_name_is_not_followed(receiver: Receiver):
    """The machine's own resolver is asked."""
    with pytest.raises(Blocked):
        send(f"http://localhost:{receiver.port}/")
    assert receiver.requests == []


def test_one_bad_address_among_good_ones_spoils_them_all(names):
    names(["8.8.8.8", "127.0.0.1"])
    with pytest.raises(Blocked):
        send("https://hooks.example/")


@pytest.mark.fault("F75")
def test_a_name_is_asked_for_once_and_the_connection_goes_to_that_answer(names, receiver: Receiver):
    """Rebinding: the second answer has another address, and no second query is made."""
    fake = names(["127.0.0.1"], ["192.0.2.1"])
    reply = send(f"http://hooks.lan:{receiver.port}/x?y=1", "hooks.lan")
    assert (reply.status, fake.asked) == (200, ["hooks.lan"])
    (request,) = receiver.requests
    assert (request.path, request.body) == ("/x?y=1", b"{}")
    assert request.headers["host"] == f"hooks.lan:{receiver.port}"


@pytest.mark.fault("F75")
def test_a_judged_address_is_the_one_that_is_connected_to(names, monkeypatch):
    """The address that a good name resolves to, without a connection."""
    seen: list[str] = []

    async def instead(_client, target, address, *_):
        seen.append(f"{target.host} {address}")
        return OutgoingReply(204, b"")

    monkeypatch.setattr(outgoing, "_send_to", instead)
    fake = names(["8.8.8.8"], ["127.0.0.1"])
    assert send("https://hooks.example/").status == 204
    assert (seen, fake.asked) == (["hooks.example 8.8.8.8"], ["hooks.example"])


def test_an_unknown_name_may_be_known_later(names):
    names([])
    with pytest.raises(Unreachable, match="not known") as error:
        send("https://hooks.example/")
    assert not error.value.permanent


# --- the call -------------------------------------------------------------------------------


@pytest.mark.parametrize("location", ["http://169.254.169.254/latest/", "/elsewhere", "//[::1]/"])
@pytest.mark.fault("F75")
def test_a_redirect_is_an_answer_and_not_followed(receiver: Receiver, location):
    receiver.answers.append((302, {"Location": location}, b""))
    assert send(f"{receiver.url}/", "127.0.0.1").status == 302
    assert len(receiver.requests) == 1


def test_the_proxies_of_the_environment_are_not_asked(receiver: Receiver, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    assert send(f"{receiver.url}/", "127.0.0.1").status == 200


def test_only_the_beginning_of_a_long_answer_is_read(receiver: Receiver):
    receiver.answers.append((200, {"Content-Encoding": "gzip"}, b"x" * 10_000_000))
    assert len(send(f"{receiver.url}/", "127.0.0.1").body) == outgoing.LARGEST_REPLY


@pytest.mark.parametrize("pace", ["silent", "trickling"])
def test_whoever_does_not_answer_in_time_is_given_up(receiver: Receiver, monkeypatch, pace):
    monkeypatch.setattr(outgoing, "SECONDS", 0.4)
    receiver.pace = pace
    began = time.monotonic()
    with pytest.raises(Unreachable, match="has not answered"):
        send(f"{receiver.url}/", "127.0.0.1")
    assert time.monotonic() - began < 3


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nA"])
def test_an_answer_that_makes_no_sense_is_none(receiver: Receiver, answer):
    receiver.raw = answer
    with pytest.raises(Unreachable):
        send(f"{receiver.url}/", "127.0.0.1")


def test_nobody_there_is_told_as_such():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with pytest.raises(Unreachable, match="cannot be reached"):
            send(f"http://127.0.0.1:{closed.getsockname()[1]}/", "127.0.0.1")


def test_the_second_address_is_tried_when_the_first_is_not_there(names, receiver: Receiver):
    names(["::1", "127.0.0.1"])
    assert send(f"http://hooks.lan:{receiver.port}/", "hooks.lan").status == 200


def test_the_certificate_must_be_the_names(names, tmp_path, monkeypatch):
    """And the name is told to the server, although the connection goes to an address."""
    outgoing._trust.cache_clear()
    with receiving(tls_for="hooks.lan", directory=tmp_path) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
        names(["127.0.0.1"])
        assert send(f"https://hooks.lan:{server.port}/", "hooks.lan").status == 200
        assert server.names_told == ["hooks.lan"]
        with pytest.raises(Unreachable, match="certificate"):
            send(f"https://other.lan:{server.port}/", "other.lan")
    outgoing._trust.cache_clear()
