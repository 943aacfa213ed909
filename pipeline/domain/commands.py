"""The session commands: one table with the name, the argument and the description of each.

It is the only source: what is parsed, the help, the menus of the platforms and of the page, and the tables of
the documents follow from it. Not here: what a command does (`gateway.turns.commands`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pipeline.domain.command_types import Argument, Command, CommandName
from pipeline.domain.errors import InvalidInput

MAX_ARGUMENT_CHARS: Final = 100  # a command in _LONGER has a whole message behind it
_LONGER: Final[Mapping[str, int]] = {"run": 4_000}
COMMANDS: Final[tuple[Command, ...]] = (
    Command(
        name="stop",
        description={
            "en": "Stop the answer in progress and everything that waits",
            "de": "Die laufende Antwort und alles Wartende anhalten",
            "fr": "Arrêter la réponse en cours et tout ce qui attend",
            "es": "Detener la respuesta en curso y todo lo que espera",
        },
    ),
    Command(
        name="new",
        description={
            "en": "Begin a new conversation and forget what was said before",
            "de": "Ein neues Gespräch beginnen und das bisherige vergessen",
            "fr": "Commencer une nouvelle conversation et oublier la précédente",
            "es": "Empezar una conversación nueva y olvidar la anterior",
        },
    ),
    Command(
        name="end",
        description={
            "en": "End the conversation; your next message begins a new one",
            "de": "Das Gespräch beenden; deine nächste Nachricht beginnt ein neues",
            "fr": "Terminer la conversation ; votre prochain message en commence une autre",
            "es": "Terminar la conversación; tu próximo mensaje empieza otra",
        },
    ),
    Command(
        name="undo",
        description={
            "en": "Take your last message and its answer out of the conversation",
            "de": "Die letzte Nachricht und ihre Antwort aus dem Gespräch nehmen",
            "fr": "Retirer votre dernier message et sa réponse de la conversation",
            "es": "Quitar tu último mensaje y su respuesta de la conversación",
        },
        argument=Argument(
            name="files",
            description={
                "en": "files: take the last change of a file back, and leave the conversation",
                "de": "files: die letzte Änderung einer Datei zurücknehmen, das Gespräch bleibt",
                "fr": "files : annuler la dernière modification d'un fichier, la conversation reste",
                "es": "files: deshacer el último cambio de un archivo, sin tocar la conversación",
            },
        ),
    ),
    Command(
        name="retry",
        description={
            "en": "Answer your last message again, in place of the old answer",
            "de": "Die letzte Nachricht neu beantworten, anstelle der alten Antwort",
            "fr": "Répondre de nouveau à votre dernier message, à la place de l'ancienne réponse",
            "es": "Responder otra vez a tu último mensaje, en lugar de la respuesta anterior",
        },
        argument=Argument(
            name="yes",
            description={
                "en": "yes: also if the old answer has changed something",
                "de": "yes: auch wenn die alte Antwort etwas verändert hat",
                "fr": "yes : même si l'ancienne réponse a modifié quelque chose",
                "es": "yes: también si la respuesta anterior cambió algo",
            },
        ),
    ),
    Command(
        name="otr",
        description={
            "en": "Begin a conversation of which nothing is kept, or end it",
            "de": "Ein Gespräch beginnen, von dem nichts bleibt, oder es beenden",
            "fr": "Commencer une conversation dont rien n'est gardé, ou la terminer",
            "es": "Empezar una conversación de la que no queda nada, o terminarla",
        },
    ),
    Command(
        name="voice",
        description={
            "en": "Have answers read aloud too, or stop that",
            "de": "Antworten auch vorlesen lassen, oder nicht mehr",
            "fr": "Faire aussi lire les réponses à voix haute, ou l'arrêter",
            "es": "Leer también las respuestas en voz alta, o dejar de hacerlo",
        },
        argument=Argument(
            name="how",
            description={
                "en": "on, off or auto (after voice notes), and slow, normal, fast, short or long",
                "de": "on, off oder auto (nach Sprachnotizen), und slow, normal, fast, short oder long",
                "fr": "on, off ou auto (après les notes vocales), et slow, normal, fast, short ou long",
                "es": "on, off o auto (tras notas de voz), y slow, normal, fast, short o long",
            },
        ),
    ),
    Command(
        name="model",
        description={
            "en": "Show the models that you can choose, or choose one for this conversation",
            "de": "Die wählbaren Modelle zeigen, oder eins für dieses Gespräch wählen",
            "fr": "Afficher les modèles disponibles, ou en choisir un pour cette conversation",
            "es": "Mostrar los modelos disponibles, o elegir uno para esta conversación",
        },
        argument=Argument(
            name="name",
            description={
                "en": "The model to choose",
                "de": "Das gewählte Modell",
                "fr": "Le modèle à choisir",
                "es": "El modelo que eliges",
            },
        ),
    ),
    Command(
        name="agent",
        description={
            "en": "Show the agents of this chat, or choose one",
            "de": "Die Agenten dieses Chats zeigen, oder einen wählen",
            "fr": "Afficher les agents de cette discussion, ou en choisir un",
            "es": "Mostrar los agentes de este chat, o elegir uno",
        },
        argument=Argument(
            name="name",
            description={
                "en": "The agent to choose",
                "de": "Der gewählte Agent",
                "fr": "L'agent à choisir",
                "es": "El agente que eliges",
            },
        ),
    ),
    Command(
        name="run",
        description={
            "en": "Show the workflows of this chat, or run one for one message",
            "de": "Die Workflows dieses Chats zeigen, oder einen für eine Nachricht ausführen",
            "fr": "Afficher les workflows de cette discussion, ou en exécuter un pour un message",
            "es": "Mostrar los flujos de este chat, o ejecutar uno para un mensaje",
        },
        argument=Argument(
            name="workflow",
            description={
                "en": "Its name, and behind it your message",
                "de": "Der Name, und dahinter deine Nachricht",
                "fr": "Son nom, suivi de votre message",
                "es": "Su nombre y, detrás, tu mensaje",
            },
        ),
    ),
    Command(
        name="runs",
        description={
            "en": "Show the runs of workflows in this chat, or stop one",
            "de": "Die Läufe von Workflows in diesem Chat zeigen, oder einen anhalten",
            "fr": "Afficher les exécutions de workflows de cette discussion, ou en arrêter une",
            "es": "Mostrar las ejecuciones de flujos de este chat, o detener una",
        },
        argument=Argument(
            name="stop",
            description={
                "en": "stop, and the run as the list names it",
                "de": "stop, und der Lauf, wie ihn die Liste nennt",
                "fr": "stop, et l'exécution telle que la liste la nomme",
                "es": "stop, y la ejecución como la nombra la lista",
            },
        ),
    ),
    Command(
        name="history",
        description={
            "en": "Search your private conversations with the bot",
            "de": "In deinen privaten Gesprächen mit dem Bot suchen",
            "fr": "Chercher dans vos conversations privées avec le bot",
            "es": "Buscar en tus conversaciones privadas con el bot",
        },
        argument=Argument(
            name="words",
            description={
                "en": "What you look for",
                "de": "Wonach du suchst",
                "fr": "Ce que vous cherchez",
                "es": "Lo que buscas",
            },
        ),
        private=True,
    ),
    Command(
        name="export",
        description={
            "en": "Send the conversations of this chat as a file",
            "de": "Die Gespräche dieses Chats als Datei schicken",
            "fr": "Envoyer les conversations de cette discussion dans un fichier",
            "es": "Enviar las conversaciones de este chat como archivo",
        },
        argument=Argument(
            name="format",
            description={
                "en": "md for Markdown, jsonl for JSON Lines",
                "de": "md für Markdown, jsonl für JSON Lines",
                "fr": "md pour Markdown, jsonl pour JSON Lines",
                "es": "md para Markdown, jsonl para JSON Lines",
            },
        ),
        private=True,
    ),
    Command(
        name="usage",
        description={
            "en": "Show the tokens and the cost of your messages, today and this month",
            "de": "Tokens und Kosten deiner Nachrichten zeigen, heute und in diesem Monat",
            "fr": "Afficher les tokens et le coût de vos messages, aujourd'hui et ce mois-ci",
            "es": "Mostrar los tokens y el coste de tus mensajes, hoy y este mes",
        },
        private=True,
    ),
    Command(
        name="status",
        description={
            "en": "Show the agent, the model and the settings of this chat",
            "de": "Agent, Modell und Einstellungen dieses Chats zeigen",
            "fr": "Afficher l'agent, le modèle et les réglages de cette discussion",
            "es": "Mostrar el agente, el modelo y los ajustes de este chat",
        },
    ),
    Command(
        name="allowed",
        description={
            "en": "Show what you have allowed for this conversation, and take it back",
            "de": "Zeigen, was du für dieses Gespräch erlaubt hast, und es zurücknehmen",
            "fr": "Montrer ce que vous avez autorisé pour cette conversation, et le retirer",
            "es": "Mostrar lo que has permitido en esta conversación y retirarlo",
        },
        argument=Argument(
            name="number",
            description={
                "en": "What to take back: its number, or all",
                "de": "Was zurückgenommen wird: die Nummer, oder all",
                "fr": "Ce qui est retiré : son numéro, ou all",
                "es": "Qué se retira: su número, o all",
            },
        ),
    ),
    Command(
        name="schedules",
        description={
            "en": "Show reminders and what repeats in this chat, pause or delete it",
            "de": "Erinnerungen und Wiederholtes in diesem Chat zeigen, anhalten oder löschen",
            "fr": "Afficher les rappels et ce qui se répète ici, le suspendre ou le supprimer",
            "es": "Mostrar los recordatorios y lo que se repite aquí, pausarlo o borrarlo",
        },
        argument=Argument(
            name="change",
            description={
                "en": "pause, resume or delete, and the number",
                "de": "pause, resume oder delete, und die Nummer",
                "fr": "pause, resume ou delete, et le numéro",
                "es": "pause, resume o delete, y el número",
            },
        ),
    ),
    Command(
        name="memory",
        description={
            "en": "Show what I remember of you, forget it, or turn memory off",
            "de": "Zeigen, was ich von dir behalten habe, es vergessen, oder das Gedächtnis abschalten",
            "fr": "Montrer ce que je retiens de vous, l'oublier, ou désactiver la mémoire",
            "es": "Mostrar lo que recuerdo de ti, olvidarlo o desactivar la memoria",
        },
        argument=Argument(
            name="what",
            description={
                "en": "page 2, forget 3, forget all, off, on, recall on or recall off",
                "de": "page 2, forget 3, forget all, off, on, recall on oder recall off",
                "fr": "page 2, forget 3, forget all, off, on, recall on ou recall off",
                "es": "page 2, forget 3, forget all, off, on, recall on o recall off",
            },
        ),
    ),
    Command(
        name="heartbeat",
        description={
            "en": "Show what is watched for you and what I do by myself, or turn it off",
            "de": "Zeigen, was ich für dich beobachte und von selbst tue, oder es abschalten",
            "fr": "Afficher ce que je surveille et fais de moi-même, ou le désactiver",
            "es": "Mostrar lo que vigilo para ti y hago por mi cuenta, o desactivarlo",
        },
        argument=Argument(
            name="change",
            description={
                "en": "on, off, here, or delete and the number",
                "de": "on, off, here, oder delete und die Nummer",
                "fr": "on, off, here, ou delete et le numéro",
                "es": "on, off, here, o delete y el número",
            },
        ),
    ),
    Command(
        name="link",
        description={
            "en": "Join this chat with your chats on other channels",
            "de": "Diesen Chat mit deinen Chats auf anderen Kanälen verbinden",
            "fr": "Relier cette discussion à vos discussions sur d'autres canaux",
            "es": "Unir este chat con tus chats en otros canales",
        },
        argument=Argument(
            name="code",
            description={
                "en": "The code from the other channel",
                "de": "Der Code vom anderen Kanal",
                "fr": "Le code de l'autre canal",
                "es": "El código del otro canal",
            },
        ),
        private=True,
    ),
    Command(
        name="unlink",
        description={
            "en": "Separate this chat from your chats on other channels",
            "de": "Diesen Chat von deinen Chats auf anderen Kanälen trennen",
            "fr": "Séparer cette discussion de vos discussions sur d'autres canaux",
            "es": "Separar este chat de tus chats en otros canales",
        },
        private=True,
    ),
    Command(
        name="help",
        description={
            "en": "Show the commands",
            "de": "Die Befehle zeigen",
            "fr": "Afficher les commandes",
            "es": "Mostrar los comandos",
        },
    ),
)
"""In the order in which menus show them."""
COMMAND_NAMES: Final[tuple[CommandName, ...]] = tuple(command.name for command in COMMANDS)
WITH_ARGUMENT: Final[frozenset[CommandName]] = frozenset(
    command.name for command in COMMANDS if command.argument is not None
)
"""The commands that take a word behind them."""


def argument_chars(name: CommandName) -> int:
    """The most characters of the words behind a command."""
    return _LONGER.get(name, MAX_ARGUMENT_CHARS)


def parsed_name(word: str) -> CommandName:
    """The command of that name. Raises InvalidInput for any other word."""
    for name in COMMAND_NAMES:
        if name == word:
            return name
    raise InvalidInput(f"commands: there is no command {word}")
