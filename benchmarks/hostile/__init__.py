"""Hostile queries, rows, files and requests beside ten good queries: who is taken down, and what does it cost?"""
