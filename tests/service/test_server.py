"""A process that serves for days does for each request what has to be done, and no more."""

import gc

import pytest

from memframe.service.app import AppMaker
from memframe.service.deployment import Addresses, Place, open_deployment


@pytest.fixture
def unfrozen():
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("unfrozen")
def test_a_round_of_the_collector_leaves_out_what_was_there_when_it_began_to_serve(tmp_path):
    open_deployment(tmp_path).close()
    app = AppMaker(Place(tmp_path), Addresses("http://127.0.0.1:8765"), log_json=False).make()
    assert len(gc.get_objects()) < 1000 < gc.get_freeze_count()
    app._app._app.state.deployment.close()  # behind who guards the host, and who answers HEAD
