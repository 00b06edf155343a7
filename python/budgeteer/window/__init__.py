"""
The window of a model: how large it is, what takes how much of it, and what is left.

`model_limits` knows today's models without a network. `negotiate` divides a window between the
input and the answer, `safe_message_count` says how many messages there may be, `retrieval_budget`
what is left for chunks, `count_messages` and `count_tools` what messages and tool schemas take.
`trim_messages` keeps the newest messages that fit.
"""

from budgeteer._count.limits import (
    ModelLimits,
    list_models,
    load_models,
    model_limits,
    register_model,
)
from budgeteer._messages.messages import count_messages, count_tools
from budgeteer._messages.trim import trim_messages
from budgeteer.errors import InputValidationError
from budgeteer.window._negotiation import Negotiation, negotiate, safe_message_count
from budgeteer.window._retrieval_budget import retrieval_budget

__all__ = [
    "InputValidationError",
    "ModelLimits",
    "Negotiation",
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
