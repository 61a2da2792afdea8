"""A run on a cluster: jobs, servers, status."""
