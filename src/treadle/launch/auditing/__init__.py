"""The audit: watches the launches of a program and tells what replay and graphs would save."""

from treadle.launch.auditing.function import audit
from treadle.launch.auditing.report import ArgumentChange, AuditReport, HostSync, SiteReport, Verdict

__all__ = ["ArgumentChange", "AuditReport", "HostSync", "SiteReport", "Verdict", "audit"]
