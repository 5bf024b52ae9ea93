"""An in-process session, for tests of your own and of Dovetail."""
