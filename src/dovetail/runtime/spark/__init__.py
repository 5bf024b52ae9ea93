"""The runtime on Spark: sessions, sources, exchanges, foreachBatch. Below the API only this folder imports pyspark."""
