//! From an experiment file or the command line to an Experiment, and from it to a Plan.
