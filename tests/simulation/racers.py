"""The program that forks simulated beats: the program of the races with more acts."""

import django

if __name__ == "__main__":
    django.setup()

from tests.races import racers
from tests.simulation import simulation_acts

if __name__ == "__main__":
    racers.ACTS |= {
        name: act
        for name, act in vars(simulation_acts).items()
        if callable(act) and act.__module__ == simulation_acts.__name__
    }
    racers.main()
