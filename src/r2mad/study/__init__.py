"""Many debates: data sets, the runner, records, scores."""
