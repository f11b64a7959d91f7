"""Take a guided tour: from an API key to a DataFrame, an audit and a cleanup, on an embedded service.

The tour plays both sides. The developer's side is the public API. The user's side is a program at the service's own
pages: it signs in, allows and approves, and nothing else. All settings are passed as arguments, so that those of this
machine are not read.
"""

from memframe.demo.sample_service import SampleService
from memframe.demo.tour import run_demo

__all__ = ["SampleService", "run_demo"]
