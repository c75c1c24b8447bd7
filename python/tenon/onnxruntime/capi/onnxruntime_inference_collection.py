"""Sessions and values, where type annotations of programs look for them."""

from ...session import InferenceSession, OrtValue
from ...session.binding import IOBinding
from ...session.values import OrtDevice

Session = InferenceSession

__all__ = ["IOBinding", "InferenceSession", "OrtDevice", "OrtValue", "Session"]
