"""The interface of every fake platform: what `parlour.testing` ships."""

from parlour.testing.platform import Call, FakePlatform, Fault, FaultKind, Faults, Person, Place, Shown

__all__ = ["Call", "FakePlatform", "Fault", "FaultKind", "Faults", "Person", "Place", "Shown"]
