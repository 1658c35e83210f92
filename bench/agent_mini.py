"""Episodes of mini-swe-agent against a scripted endpoint: what a turn costs the harness.

usage: agent_mini.py URL MODEL EPISODES [--key-env NAME]

The agent, its prompts and its tool are mini-swe-agent's own (DefaultAgent, mini.yaml, LocalEnvironment); episodes run as its
batch runner runs them, a thread each in one process. Commands run as they are, in an empty folder. One line of JSON:
CPU of this process in the episodes, of its children, and its peak memory, as the kernel counts them; `start` is the time up to the end
of a first episode that is not counted."""
import concurrent.futures
import importlib.resources
import json
import os
import resource
import sys
import tempfile
import time

os.environ.setdefault("MSWEA_SILENT_STARTUP", "1")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else litellm fetches its price list
started = time.perf_counter()
import litellm  # noqa: E402
import yaml  # noqa: E402
from minisweagent.agents.default import DefaultAgent  # noqa: E402
from minisweagent.environments.local import LocalEnvironment  # noqa: E402
from minisweagent.models.litellm_model import LitellmModel  # noqa: E402

url, model, episodes = sys.argv[1], sys.argv[2], int(sys.argv[3])
config = yaml.safe_load((importlib.resources.files("minisweagent") / "config/mini.yaml").read_text())
key = os.environ[sys.argv[5]] if len(sys.argv) > 5 else "none"
# A price, as its users give one: without it each turn pays for a search and an exception.
litellm.register_model({"openai/" + model: {"litellm_provider": "openai", "mode": "chat", "max_tokens": 4096,
                                            "input_cost_per_token": 1e-7, "output_cost_per_token": 1e-7}})


def cpu(who: int) -> float:
    r = resource.getrusage(who)
    return r.ru_utime + r.ru_stime


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def episode(_: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        known = {k: v for k, v in config["agent"].items() if k in ("system_template", "instance_template", "step_limit", "cost_limit")}
        templates = {k: v for k, v in config["model"].items() if k in ("observation_template", "format_error_template")}
        agent = DefaultAgent(
            LitellmModel(model_name="openai/" + model, model_kwargs={"api_base": url + "/v1", "api_key": key}, **templates),
            LocalEnvironment(cwd=folder, env=config["environment"].get("env", {})), **known)
        end = agent.run("sum the harmonic series")
        assert end["exit_status"] == "Submitted", end
        return agent.n_calls


episode(0)  # modules and connections that the first call brings are not the turns'
start_s, idle_mib = time.perf_counter() - started, peak_mib()
before, children, at = cpu(resource.RUSAGE_SELF), cpu(resource.RUSAGE_CHILDREN), time.perf_counter()
with concurrent.futures.ThreadPoolExecutor(episodes) as pool:
    turns = sum(pool.map(episode, range(episodes)))
print(json.dumps({
    "harness": "mini-swe-agent", "episodes": episodes, "turns": turns, "wall_s": round(time.perf_counter() - at, 3),
    "cpu_ms_a_turn": round((cpu(resource.RUSAGE_SELF) - before) * 1e3 / turns, 2),
    "children_ms_a_turn": round((cpu(resource.RUSAGE_CHILDREN) - children) * 1e3 / turns, 2),
    "peak_mib": round(peak_mib(), 1), "peak_mib_before": round(idle_mib, 1), "start_s": round(start_s, 2),
    "start_cpu_s": round(before, 2)}))
