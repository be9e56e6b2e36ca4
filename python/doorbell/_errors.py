# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""What doorbell raises."""


class Error(RuntimeError):
    """Something was refused, or failed: what, and why. Tracebacks show the hint, too.

    `hint` is what to do about it, perhaps empty; `exit_code` what the command line would end with: 1 for bad input, 2 for
    lost or wrong data, 77 where a device is absent.
    """

    def __init__(self, text: str, hint: str = "", exit_code: int = 1):
        super().__init__(text)
        self.hint = hint
        self.exit_code = exit_code
        if hint and hasattr(self, "add_note"):
            self.add_note(hint)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C has ended a run. `result` is as far as it came; None if nothing was measured."""

    def __init__(self, result):
        super().__init__("the run was interrupted; what it had measured is the exception's `result`")
        self.result = result
