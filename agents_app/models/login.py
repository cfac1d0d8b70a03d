"""Failed logins to the admin, kept for a day."""

from django.db import models


class LoginFailure(models.Model):
    """A failed login: user name and address."""

    user_name = models.CharField(max_length=150)
    address = models.CharField(max_length=64)
    at = models.DateTimeField()

    class Meta:
        db_table = "drover_login_failure"
        verbose_name = "failed login"
        indexes = [
            models.Index(fields=["address", "at"], name="login_failure_of_address"),
            models.Index(fields=["at"], name="login_failure_expired"),
        ]

    def __str__(self) -> str:
        return f"{self.user_name} from {self.address}"
