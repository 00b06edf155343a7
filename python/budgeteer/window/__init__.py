"""
The window of a model: its size, its use, and what is left of it.

`model_limits` knows today's models without a network. `negotiate` divides a window between the
input and the answer. `safe_message_count` returns how many messages fit, `retrieval_budget` how
many tokens are left for chunks, `count_messages` and `count_tools` how many tokens messages and
tool schemas cost. `trim_messages` keeps the newest messages that fit.
"""

from budgeteer._count.limits import (
    ModelLimits,
    list_models,
    load_models,
    model_limits,
    register_model,
)
from budgeteer._messages.messages import MessageCount, count_messages, count_tools
from budgeteer._messages.trim import Trimmed, trim_messages
from budgeteer.errors import InputValidationError
from budgeteer.window._negotiation import Negotiation, negotiate, safe_message_count
from budgeteer.window._retrieval_budget import retrieval_budget

__all__ = [
    "InputValidationError",
    "MessageCount",
    "ModelLimits",
    "Negotiation",
    "Trimmed",
    "count_messages",
    "count_tools",
    "list_models",
    "load_models",
    "model_limits",
    "negotiate",
    "register_model",
    "retrieval_budget",
    "safe_message_count",
    "trim_messages",
]
