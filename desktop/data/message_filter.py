"""A filter of messages, as plain values that a project stores."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MessageFilter:
    """Messages with at least so many bytes and seconds between send and receive; of one communicator (its
    number in the trace), with one tag, with the rank `partner` at either end; None: any. Not `shown`: no
    messages."""

    shown: bool = True
    least_bytes: int = 0
    least_s: float = 0.0
    communicator: int | None = None
    partner: int | None = None
    tag: int | None = None

    @property
    def everything(self) -> bool:
        """Whether no message is filtered out, if messages are shown."""
        return self == MessageFilter(self.shown)

    def problem(self) -> str:
        if self.least_bytes < 0 or not 0 <= self.least_s < float("inf"):
            return "a least size or duration of messages is negative or not finite"
        return ""


ALL_MESSAGES = MessageFilter()
