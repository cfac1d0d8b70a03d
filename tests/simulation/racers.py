"""The program that simulated beats are forked from: that of the races, with more to do."""

import django

if __name__ == "__main__":
    django.setup()

from tests.races import racers
from tests.simulation import acts

if __name__ == "__main__":
    racers.ACTS |= {
        name: act
        for name, act in vars(acts).items()
        if callable(act) and act.__module__ == acts.__name__
    }
    racers.main()
