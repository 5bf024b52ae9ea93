"""A load that rises and falls, for suite `elastic`."""
