"""The Celery edge: tasks of a few lines, each carrying one id or nothing."""

from celery import shared_task

from agents_app.worker import current_host, execute


@shared_task(name="agents_app.tasks.execute_run", ignore_result=True)
def execute_run(run_id: int) -> None:
    execute.execute(run_id, current_host())
