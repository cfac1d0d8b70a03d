"""A simple webhook view that saves one row per request and answers."""

from django.db import models
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt


class Hook(models.Model):
    delivery_id = models.CharField(max_length=200, unique=True)
    event = models.CharField(max_length=200)
    body = models.BinaryField()
    received_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label = "peer"

    def __str__(self) -> str:
        return self.delivery_id


@csrf_exempt
def receive(request: HttpRequest) -> JsonResponse:
    hook = Hook.objects.create(
        delivery_id=request.headers["X-GitHub-Delivery"],
        event=request.headers["X-GitHub-Event"],
        body=request.body,
    )
    return JsonResponse({"ok": True, "delivery": hook.pk})
