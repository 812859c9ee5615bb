"""Runs a command in a network in which there is nothing but one server: `sealed.py PORT SOCKET -- COMMAND …`.

To be started in a network namespace of its own (`unshare -rn`), with whatever Python there is. Connections to PORT are
carried to the server's Unix socket, which belongs to the file system and so can be reached from any network.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import socket
import struct
import sys

GET_FLAGS, SET_FLAGS, UP = 0x8913, 0x8914, 0x1
"""From Linux' `sockios.h` and `if.h`: a new network has a loopback device, but it is down."""
PIECE = 1 << 16


def raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("16sh14x", b"lo", 0)
        (flags,) = struct.unpack("16xh14x", fcntl.ioctl(any_socket, GET_FLAGS, asked))
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh14x", b"lo", flags | UP))


async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(PIECE):
            writer.write(piece)
            await writer.drain()
    writer.close()


async def main(port: int, server: str, command: list[str]) -> int:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_unix_connection(server)
        await asyncio.gather(carry(reader, forth), carry(back, writer))

    raise_loopback()
    async with await asyncio.start_server(connected, "127.0.0.1", port):
        process = await asyncio.create_subprocess_exec(*command)
        return await process.wait()


if __name__ == "__main__":
    at = sys.argv.index("--")
    port, server = sys.argv[1:at]
    sys.exit(asyncio.run(main(int(port), server, sys.argv[at + 1 :])))
