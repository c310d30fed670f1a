# SPDX-License-Identifier: Apache-2.0
"""Generators and coroutines within one another, each way by which one is resumed, for CPython 3.6 and newer: each(burn)
calls burn() in all of them."""
import asyncio
import threading
import types

own = threading.local()


# --- generators ---

def numbers(burn):
    for i in range(2):
        yield burn() + i


def delegating(burn):
    yield from numbers(burn)
    yield burn()


class Iterator:
    def __init__(self, burn):
        self.burn, self.left = burn, 2
        burn()

    def __iter__(self):
        return self

    def __next__(self):
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return self.burn()


def over_iterator(burn):
    yield from Iterator(burn)


def catching(burn):
    try:
        yield burn()
    except KeyError:
        burn()
    try:
        yield
    finally:
        burn()


def around_catching(burn):
    try:
        yield from catching(burn)
    except ValueError:
        burn()
    try:
        yield
    finally:
        burn()


def thrown_into(burn):
    generator = around_catching(burn)
    next(generator)
    generator.throw(KeyError())
    generator.throw(ValueError())
    generator.close()


def sent_to(burn):
    while True:
        if (yield burn()) is None:
            burn()
            return


def sending(burn):
    generator = sent_to(burn)
    next(generator)
    generator.send(1)
    next(generator, None)


# --- coroutines ---

@types.coroutine
def switch(burn):
    burn()
    yield
    burn()


class Awaitable:
    def __init__(self, burn):
        self.burn = burn
        burn()

    def __await__(self):
        self.burn()
        yield
        self.burn()


async def innermost(burn):
    await switch(burn)
    burn()


async def middle(burn):
    await innermost(burn)
    await Awaitable(burn)


async def asynchronous_numbers(burn):
    try:
        for i in range(2):
            await switch(burn)
            yield burn() + i
    finally:
        await switch(burn)


async def asynchronous_for(burn):
    async for _ in asynchronous_numbers(burn):
        burn()
    return [x async for x in asynchronous_numbers(burn)]


class Context:
    def __init__(self, burn):
        self.burn = burn
        burn()

    async def __aenter__(self):
        await switch(self.burn)

    async def __aexit__(self, *_):
        self.burn()


async def closing(burn):
    generator = asynchronous_numbers(burn)
    await generator.asend(None)
    await generator.aclose()


async def outer(burn):
    async with Context(burn):
        await middle(burn)
    await asynchronous_for(burn)
    await closing(burn)


async def cancelled(burn):
    try:
        await asyncio.sleep(60)
    finally:
        burn()


async def task(burn, depth):
    burn()
    if depth:
        await asyncio.gather(task(burn, depth - 1), task(burn, depth - 1))
        await asyncio.ensure_future(task(burn, 0))
    await asyncio.sleep(0)
    await middle(burn)


async def cancelling(burn):
    burn()
    inner = asyncio.ensure_future(cancelled(burn))
    await asyncio.sleep(0)
    inner.cancel()
    await asyncio.wait([inner])
    asyncio.get_event_loop().call_soon(called, burn)
    await asyncio.sleep(0)


def called(burn):
    burn()


async def root(burn):
    await outer(burn)
    await task(burn, 1)
    await cancelling(burn)


def by_hand(burn):
    coroutine = outer(burn)
    try:
        while True:
            coroutine.send(None)
    except StopIteration:
        pass


def each(burn):
    for generate in (numbers, delegating, over_iterator):
        for _ in generate(burn):
            burn()
    thrown_into(burn)
    sending(burn)
    by_hand(burn)
    if not hasattr(own, "loop"):
        own.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(own.loop)
    own.loop.run_until_complete(root(burn))
