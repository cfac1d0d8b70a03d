"""All providers by the name that addresses and config.toml use."""

from agents_app.webhooks.providers.alertmanager import ALERTMANAGER, GRAFANA
from agents_app.webhooks.providers.discord import DISCORD
from agents_app.webhooks.providers.generic import GENERIC
from agents_app.webhooks.providers.github import GITHUB
from agents_app.webhooks.providers.gitlab import GITLAB
from agents_app.webhooks.providers.jira import JIRA
from agents_app.webhooks.providers.linear import LINEAR
from agents_app.webhooks.providers.mintlify import MINTLIFY
from agents_app.webhooks.providers.pagerduty import PAGERDUTY
from agents_app.webhooks.providers.provider import Provider
from agents_app.webhooks.providers.sentry import SENTRY
from agents_app.webhooks.providers.slack import SLACK
from agents_app.webhooks.providers.standard import STANDARD
from agents_app.webhooks.providers.stripe import STRIPE
from agents_app.webhooks.providers.trial import TRIAL
from agents_app.webhooks.providers.twitter import TWITTER

PROVIDERS: dict[str, Provider] = {
    "github": GITHUB,
    "gitlab": GITLAB,
    "sentry": SENTRY,
    "linear": LINEAR,
    "jira": JIRA,
    "pagerduty": PAGERDUTY,
    "stripe": STRIPE,
    "grafana": GRAFANA,
    "alertmanager": ALERTMANAGER,
    "mintlify": MINTLIFY,
    "slack": SLACK,
    "discord": DISCORD,
    "standard": STANDARD,
    "generic": GENERIC,
    "twitter": TWITTER,
}
# Separate, because it checks no signature: only a source with allow_unsigned may use it.
TRIAL_PROVIDERS: dict[str, Provider] = {"test": TRIAL}
