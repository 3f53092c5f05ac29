"""Who may call next: older debates first, nobody lost, nothing leaked."""

import asyncio
import random

from r2mad.models._slots import Slots, place


async def test_older_debates_go_first_and_equals_in_order_of_arrival() -> None:
    slots, served = Slots(1), []

    async def call(name: str, at: int) -> None:
        place.set(at)
        async with slots:
            served.append(name)
            await asyncio.sleep(0)

    async with slots:
        tasks = [asyncio.create_task(call(name, at)) for name, at in [("c", 3), ("a", 1), ("b1", 2), ("b2", 2)]]
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert served == ["a", "b1", "b2", "c"]


async def test_the_limit_holds_and_no_slot_is_lost_whatever_is_cancelled() -> None:
    chance, slots, busy, most = random.Random(3), Slots(5), 0, 0

    async def call(at: int) -> None:
        nonlocal busy, most
        place.set(at)
        async with slots:
            busy += 1
            most = max(most, busy)
            await asyncio.sleep(chance.random() / 500)
            busy -= 1

    await asyncio.gather(*(call(chance.randrange(9)) for _ in range(200)))
    assert (busy, most) == (0, 5)
    tasks = [asyncio.create_task(_hold(slots, chance)) for _ in range(200)]
    await asyncio.sleep(0.01)
    for task in chance.sample(tasks, 120):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert slots._free == 5
    assert not any(not turn.done() for _, _, turn in slots._waiting)


async def _hold(slots: Slots, chance: random.Random) -> None:
    async with slots:
        await asyncio.sleep(chance.random() / 100)
