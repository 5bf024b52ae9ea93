"""What a session can be told: small records that check themselves, and one record of what only Dovetail itself sets."""

from dovetail.engine.options.engine_options import EngineOptions, make_options, user_options
from dovetail.engine.options.tuning import EngineTuning

__all__ = ["EngineOptions", "EngineTuning", "make_options", "user_options"]
