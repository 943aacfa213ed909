"""URLs and IP addresses: what is fetched from, and what never is."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.tools.web_addresses import MAX_URL_CHARS, BadUrl, public_only, read_url
from tests.support.tables import each

CLOSED_BLOCKS = [
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
    *("192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4"),
]
PUBLIC = [
    *("1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255"),
    *("128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0"),
    *("192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255"),
    *("2606:4700:4700::1111", "2a00:1450:4001:82b::200e", "2001:4860:4860::8888"),
]
CLOSED_V6 = [
    *("::", "::1", "fc00::1", "fd12:3456::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "100::1"),
    *("64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8"),
    *("::ffff:0:127.0.0.1", "::127.0.0.1", "2002:7f00:1::", "2002:808:808::1", "2001::1", "2001:0:a00:1::"),
    *("2001:db8::1", "3fff::1", "5f00::1", "4000::1", "2001:20::1"),
]
PRIVATE = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.1.1", "172.16.0.1", "100.64.0.1", "0.0.0.0"]


def edges(block: str) -> list[str]:
    network = IPv4Network(block)
    return [str(network[0]), str(network[1]), str(network[network.num_addresses // 2]), str(network[-1])]


@each("address", [edge for block in CLOSED_BLOCKS for edge in edges(block)])
def test_the_edges_of_every_closed_block_are_refused(address: str) -> None:
    assert public_only(address)


@each("address", [edge for block in CLOSED_BLOCKS for edge in edges(block)])
def test_a_closed_address_stays_closed_in_the_forms_of_ipv6_that_carry_one(address: str) -> None:
    number = int(IPv4Address(address))
    carried = [
        IPv6Address((0xFFFF << 32) | number),
        IPv6Address(number),
        IPv6Address((0x64FF9B << 96) | number),
        IPv6Address((0x2002 << 112) | (number << 80)),
        IPv6Address((0x2001 << 112) | (number ^ 0xFFFFFFFF)),
        IPv6Address((0x0064FF9B0001 << 80) | number),
    ]

    assert [str(form) for form in carried if not public_only(str(form))] == []


@each("address", CLOSED_V6)
def test_addresses_of_ipv6_that_are_not_the_publics_are_refused(address: str) -> None:
    assert public_only(address)


@each("address", PUBLIC)
def test_public_addresses_are_let_through(address: str) -> None:
    assert public_only(address) == ""


@each("text", ["", "localhost", "127.1", "0x7f000001", "2130706433", "1.1.1.1/24", "::1]"])
def test_what_is_no_address_is_refused(text: str) -> None:
    assert public_only(text)


@settings(max_examples=300, deadline=None)
@given(st.ip_addresses())
def test_nothing_is_open_that_the_standard_library_knows_to_be_closed(
    address: IPv4Address | IPv6Address,
) -> None:
    if public_only(str(address)) == "":
        assert address.is_global
        assert not address.is_multicast


def forms(address: str) -> list[str]:
    """Forms of an IPv4 address that some resolver or browser would take."""
    a, b, c, d = (int(part) for part in address.split("."))
    number = int(IPv4Address(address))
    return [
        str(number),
        hex(number),
        hex(number).upper().replace("0X", "0x"),
        f"0{number:o}",
        f"{a:#x}.{b:#x}.{c:#x}.{d:#x}",
        f"0{a:o}.0{b:o}.0{c:o}.0{d:o}",
        f"{a:04o}.{b}.{c}.{d}",
        f"{a}.{(b << 16) | (c << 8) | d}",
        f"{a}.{b}.{(c << 8) | d}",
        f"{a:#x}.{(b << 16) | (c << 8) | d}",
        f"{a:03d}.{b:03d}.{c:03d}.{d:03d}" if max(a, b, c, d) < 100 else f"{a}.{b}.{c}.0{d}",
        f"{a + 256}.{b}.{c}.{d}",
        f"{a}.{b}.{c}.{d}.0",
        f"{a}.{b}.{c}",
    ]


@each("host", [form for address in PRIVATE for form in forms(address)])
def test_an_unusual_way_to_write_an_ip_address_is_no_host(host: str) -> None:
    with pytest.raises(BadUrl):
        read_url(f"http://{host}/")


@each("address", PRIVATE)
@each("dot", ["\u3002", "\uff0e", "\uff61"])
def test_dots_and_digits_of_other_alphabets_hide_no_address(address: str, dot: str) -> None:
    wide = "".join(chr(ord(sign) + 0xFEE0) if sign.isdigit() else dot for sign in address)

    for host in (wide, address.replace(".", dot)):
        target = read_url(f"http://{host}/")
        assert target.host == address
        assert public_only(target.host)


@each("address", PRIVATE)
def test_private_addresses_in_urls_are_known_when_they_are_connected_to(address: str) -> None:
    for url in (f"http://{address}/", f"HTTP://{address}:80", f"https://{address}./x"):
        assert public_only(read_url(url).host)


@each("host", [f"[{address}]" for address in CLOSED_V6 if "%" not in address])
def test_ipv6_in_brackets_is_read_and_then_refused(host: str) -> None:
    assert public_only(read_url(f"http://{host}/").host)


@each(
    "url",
    [
        *(
            "",
            "/",
            "example.com",
            "//example.com",
            "http:example.com",
            "http:/example.com",
            "http:///example.com",
        ),
        *("ftp://example.com/", "file:///etc/passwd", "gopher://example.com", "javascript:alert(1)"),
        *(
            "data:text/html,x",
            "ws://example.com",
            "unix:///var/run/x.sock",
            "http+unix://x/",
            "HTTPX://e.com",
        ),
        *("http://user@example.com/", "http://user:pass@example.com/", "http://@example.com/"),
        *("http://example.com@127.0.0.1/", "http://127.0.0.1:80@example.com/", "http://a@b@example.com/"),
        *("http://example.com\\@127.0.0.1/", "http:\\\\127.0.0.1/", "http://127.0.0.1\\.example.com/"),
        *("http://exa mple.com/", " http://example.com/", "http://example.com/ ", "http://example.com/\n"),
        *("http://example.com/\r\nHost: x", "http://exam\tple.com/", "http://example.com\x00.org/"),
        *("http://ex\u200bample.com/", "http://example.com/\u202egnp.exe", "http://\u2066example.com/"),
        *("http://example.com:22/", "http://example.com:25", "https://example.com:8443/", "http://e.com:0/"),
        *(
            "http://example.com:65536/",
            "http://example.com:-1/",
            "http://example.com:8o/",
            "http://e.com:99999/",
        ),
        *("http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/", "http://[::1", "http://::1/", "http://[]/"),
        *("http://[127.0.0.1]/", "http://[::1]x/", "http://[v1.x]/", "http://1.2.3.4.5/", "http://0x/"),
        *("http://./", "http://../", "http://a..b/", "http://-a.com/", "http://a-.com/", "http://.a.com/"),
        *("http://a%2eb.com/", "http://%31%32%37.0.0.1/", "http://127%2e0%2e0%2e1/", "http://ex*mple.com/"),
        *("http://" + "a" * 64 + ".com/", "http://" + "a." * 130 + "com/", "http://example.com,evil.com/"),
        "http://example.com/" + "a" * MAX_URL_CHARS,
    ],
)
def test_a_url_that_is_not_plain_is_refused(url: str) -> None:
    with pytest.raises(BadUrl):
        read_url(url)


@each(
    "url, asked",
    [
        ("http://example.com", "http://example.com/"),
        ("HTTPS://Example.COM:443/A?b=C#part", "https://example.com/A?b=C"),
        ("https://example.com./x", "https://example.com/x"),
        ("http://example.com:443/x", "http://example.com:443/x"),
        ("https://bücher.example/straße?q=größe", None),
        ("http://xn--bcher-kva.example/", "http://xn--bcher-kva.example/"),
        ("http://example.com/a%20b?c=%26&d=[1]", "http://example.com/a%20b?c=%26&d=%5B1%5D"),
        ("http://[2606:4700::1111]/", "http://[2606:4700::1111]/"),
        ("http://1.1.1.1/", "http://1.1.1.1/"),
        ("http://my_host.example.com/", "http://my_host.example.com/"),
    ],
)
def test_a_plain_url_is_asked_for_as_it_is(url: str, asked: str | None) -> None:
    target = read_url(url)

    assert target.url.isascii()
    assert asked is None or target.url == asked


def test_other_ports_are_for_operators_who_allow_them() -> None:
    assert read_url("http://example.com:8080/", (8080,)).port == 8080
    with pytest.raises(BadUrl, match="port 80"):
        read_url("http://example.com/", (8080,))


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="htps:/@#?%[].0123456789xabcdef\\ \u3002\uff0e", max_size=40))
def test_whatever_a_url_is_its_host_is_a_plain_name_or_an_address(text: str) -> None:
    try:
        target = read_url("http://" + text)
    except BadUrl:
        return

    last = target.host.rpartition(".")[2]
    if ":" in target.host or last.isdigit() or last.startswith("0x"):
        assert str(ip_address(target.host)) == target.host
        return
    with pytest.raises(OSError, match="illegal"):
        socket.inet_aton(target.host)
