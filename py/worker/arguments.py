"""How get_init_inputs() and get_inputs() become arguments: the same for Model and for a ModelNew in its place."""
import inspect


def of_init(init, model_class) -> tuple[list, dict]:
    """For Model(*init), Model(**init), or Model(*positional, **keywords) of the [positional, {keywords}] form."""
    if isinstance(init, dict):
        return [], init
    init = list(init) if isinstance(init, (list, tuple)) else [init]
    two = len(init) == 2 and isinstance(init[0], (list, tuple)) and isinstance(init[1], dict)
    if two and all(isinstance(k, str) for k in init[1]):
        try:
            inspect.signature(model_class).bind(*init[0], **init[1])
            return list(init[0]), init[1]
        except (TypeError, ValueError):
            pass  # the two are arguments themselves
    return init, {}


def by_keyword(inputs, forward) -> bool:
    """A dict whose keys are forward's parameters is its keywords; `forward` may be unbound."""
    parameters = inspect.signature(forward).parameters.values()
    return isinstance(inputs, dict) and set(inputs) <= {p.name for p in parameters if p.kind != p.VAR_POSITIONAL}


def call(model, inputs, keywords: bool):
    if keywords:
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, (list, tuple)) else model(inputs)
