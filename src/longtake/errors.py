"""One error tree. A message says what was got, what was expected and what to do, on one line."""


class LongtakeError(Exception):
    """Base of all errors that longtake raises on purpose."""


class ConfigError(LongtakeError, ValueError):
    """An option, a recipe or a config has a value that cannot work."""


class SourceError(LongtakeError, OSError):
    """A video source cannot be opened or read."""


class StateError(LongtakeError, ValueError):
    """A state does not fit the model, the source or this version."""


class CapacityError(LongtakeError, RuntimeError):
    """A stated limit (bytes, horizon, sessions) is reached."""


class HorizonReached(CapacityError):
    """A stream has used the positions that its model was made for; a session then ends it, and can still be asked."""


class CheckpointError(LongtakeError, OSError):
    """Model weights or their config are missing, damaged or of another kind."""


class UnsupportedRequest(LongtakeError, TypeError):
    """The model does not serve this kind of request."""
