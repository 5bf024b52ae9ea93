"""From live queries and statistics to a shared plan. Knows no file, no array and no Spark."""
