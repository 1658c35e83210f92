"""Nests of lists, tuples and dicts, flattened to named leaves and rebuilt from them."""
import torch


def flatten(value, name: str) -> list[tuple[str, object]]:
    """[("xs.0", tensor), ("d.key", 3), ...] in a fixed order."""
    if isinstance(value, (list, tuple)):
        return [leaf for i, v in enumerate(value) for leaf in flatten(v, f"{name}.{i}")]
    if isinstance(value, dict):
        return [leaf for k, v in value.items() for leaf in flatten(v, f"{name}.{k}")]
    return [(name, value)]


def rebuild(like, leaves):
    """The nest `like` with its leaves taken from the iterator `leaves`."""
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return type(like)(*(rebuild(v, leaves) for v in like))
    if isinstance(like, (list, tuple)):
        return (tuple if isinstance(like, tuple) else list)(rebuild(v, leaves) for v in like)
    if isinstance(like, dict):
        return {k: rebuild(v, leaves) for k, v in like.items()}
    return next(leaves)


def map_tensors(value, change):
    leaves = [change(v) if isinstance(v, torch.Tensor) else v for _, v in flatten(value, "")]
    return rebuild(value, iter(leaves))
