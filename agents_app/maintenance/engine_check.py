"""Doctor's look at what containers need: an engine that answers, and the agents' images."""

from collections.abc import Iterator

from agents_app.models import Agent
from agents_app.runners import DOCKER, EngineNotFound, EngineRefused, EngineUnavailable

START = "start it, or point DOCKER_HOST at it; their work is queued meanwhile"


def engine_problems() -> Iterator[tuple[str, str]]:
    """What keeps agents from running in containers here, and what to do; no agents, no problems."""
    enabled = Agent.objects.filter(removed_at__isnull=True, scale__gt=0)
    for agent in enabled.filter(runtime__type="container").order_by("name"):
        image = str(agent.runtime.get("image", ""))
        try:
            DOCKER.image_environment(image or "none")
        except EngineNotFound:
            if agent.runtime.get("pull") != "missing" or not image:
                advice = f"docker pull {image}" if image else "set runtime.image, or the project's"
                yield f"{agent.name}: no image {image!r} on this machine", advice
        except EngineUnavailable:
            yield f"{agent.name}: Docker is not reachable at {DOCKER.address}", START
        except EngineRefused as error:
            yield f"{agent.name}: Docker refused the request: {error}", START
