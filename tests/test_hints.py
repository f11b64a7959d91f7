"""Next steps of errors: where Python and the command line name them differently, an error has both."""

import ast
import pickle
import re

import memframe as mf
from memframe.errors import AccessError, Hint, PlanError, resume_hint
from tests.test_house import MODULES, name_of, tree_of

PYTHON_ADVICE = re.compile(
    r"\b(resume_run|list_runs|purge_runs|wait_for_decision|plan_reseal)\(|\b(confirm|encrypt|max_share|max_changes|key)=\S"
)


def called(node):
    return (
        getattr(node.func, "id", None) or getattr(node.func, "attr", "") if isinstance(node, ast.Call) else ""
    )


def messages(tree):
    """The texts of errors that are made, without those of their hints."""
    for node in ast.walk(tree):
        if called(node).endswith("Error"):
            texts = [*node.args]
            while texts:
                text = texts.pop()
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    yield text.value
                elif called(text) != "Hint":
                    texts.extend(ast.iter_child_nodes(text))


def test_no_message_advises_a_call_that_a_shell_cannot_make():
    advice = {
        name_of(path): found
        for path in MODULES
        if (found := [text for text in messages(tree_of(path)) if PYTHON_ADVICE.search(text)])
    }
    assert advice == {}


def test_an_error_with_a_hint_says_it_in_both_ways_also_after_a_pickle():
    hint = resume_hint("a.journal") + "; or " + Hint("pass confirm=1", "give --confirm 1")
    for error in (PlanError("begun", hint=hint), AccessError("begun", status=403, hint=hint)):
        for copy in (error, pickle.loads(pickle.dumps(error))):  # noqa: S301 - of our own
            assert str(copy) == "begun: resume_run(access, 'a.journal') continues it; or pass confirm=1"
            assert copy.for_shell() == "begun: memframe resume a.journal continues it; or give --confirm 1"
    assert mf.MemframeError("plain").for_shell() == "plain"
