"""A scripted gateway that serves the page as the web adapter does, and can be stopped and started again."""

from __future__ import annotations

from aiohttp import web

from adapters.web.pages import WORKER, PageFiles
from adapters.web.text_tables import packaged_tables
from tests.end_to_end.page.fake_gateway import STATIC, FakeGateway


class StoppableGateway:
    """A gateway that can be stopped and started again on its port, with other files."""

    def __init__(self) -> None:
        self.fake = FakeGateway()
        self.pages = PageFiles(STATIC, packaged_tables())
        self.port = 0
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/", self._index)
        app.router.add_get(f"/{WORKER}", self._worker)
        app.router.add_get("/ws", self.fake.handle)
        app.router.add_get("/static/{name:.+}", self._file)
        self._runner = web.AppRunner(app, shutdown_timeout=0.2)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        self.fake.cut()
        assert self._runner is not None
        await self._runner.cleanup()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _index(self, request: web.Request) -> web.StreamResponse:
        return self.pages.page(request)

    async def _worker(self, request: web.Request) -> web.StreamResponse:
        return self.pages.response(WORKER, request)

    async def _file(self, request: web.Request) -> web.StreamResponse:
        return self.pages.response(request.match_info["name"], request)
