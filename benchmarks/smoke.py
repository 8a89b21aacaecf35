"""One round of every workload: whether the results are right, and not how long they take."""

from tensorsplit.cli import main

if __name__ == "__main__":
    main.main(["bench", "--quick"])
