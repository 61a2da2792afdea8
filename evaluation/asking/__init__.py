"""One way to ask a judge: the form, asking until it can be read, the verdict."""
