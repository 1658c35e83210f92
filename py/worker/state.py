"""What a model keeps: parameters and buffers by state_dict's names, plain tensor attributes as attr:path."""
import torch

from .signature import is_float


class Entry:
    """One tensor of a model, with the module that owns it."""

    def __init__(self, name: str, tensor: torch.Tensor, owner: torch.nn.Module, key: str, item: int = -1):
        self.name, self.owner, self.key, self.item = name, owner, key, item
        self.tensor = tensor.data if isinstance(tensor, torch.nn.Parameter) else tensor
        self.is_parameter = isinstance(tensor, torch.nn.Parameter)

    def put(self, tensor: torch.Tensor) -> None:
        """Replace the attribute itself (not its values): for state that forward replaces, too."""
        if self.item >= 0:
            held = getattr(self.owner, self.key)
            items = list(held)
            items[self.item] = tensor
            tensor = type(held)(items)
        setattr(self.owner, self.key, tensor)


def _attributes(path: str, module: torch.nn.Module) -> list[Entry]:
    found = []
    for key, value in vars(module).items():
        name = f"attr:{path}.{key}" if path else f"attr:{key}"
        if isinstance(value, torch.Tensor):
            found.append(Entry(name, value, module, key))
        elif isinstance(value, (list, tuple)) and not hasattr(value, "_fields") and not key.startswith("_"):
            found += [Entry(f"{name}.{i}", v, module, key, i) for i, v in enumerate(value) if isinstance(v, torch.Tensor)]
    return found


def entries(model: torch.nn.Module) -> list[Entry]:
    """state_dict's tensors in its order, then buffers and attributes that it leaves out."""
    modules = dict(model.named_modules())
    found = []

    def add(name: str, tensor, prefix: str = "") -> None:
        path, _, key = name.rpartition(".")
        found.append(Entry(prefix + name, tensor, modules.get(path, model), key))

    for name, tensor in model.state_dict(keep_vars=True).items():
        if isinstance(tensor, torch.Tensor):
            add(name, tensor)
    names = {e.name for e in found}
    for name, tensor in model.named_buffers(remove_duplicate=False):
        if name not in names:
            add(name, tensor, "attr:")
    for path, module in modules.items():
        found += _attributes(path, module)
    return found


def move_attributes(model: torch.nn.Module, device: torch.device) -> None:
    """Plain attributes stay where they were made; Module.to() does not know them."""
    for path, module in model.named_modules():
        for e in _attributes(path, module):
            if e.tensor.device != device:
                e.put(e.tensor.to(device))


def cast(model: torch.nn.Module, change) -> torch.nn.Module:
    """`change` applied to the values of every floating tensor; tied ones stay tied."""
    model._apply(lambda t: change(t) if is_float(t) else t)
    for path, module in model.named_modules():
        for e in _attributes(path, module):
            if is_float(e.tensor):
                e.put(change(e.tensor))
    return model


def plain_values(model: torch.nn.Module) -> dict:
    """Numbers and texts that modules hold: a change of one is state that no candidate can be given."""
    return {f"{path}.{key}".lstrip("."): value for path, module in model.named_modules()
            for key, value in vars(module).items() if isinstance(value, (bool, int, float, str)) and not key.startswith("_")}
