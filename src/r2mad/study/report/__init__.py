"""A study's report: one HTML page that is whole in itself, its figures and its tables.

from r2mad.study.report.write import write_report

write_report([Path("RUN")])
"""
