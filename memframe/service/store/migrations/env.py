"""Run alembic commands on the connection that `upgrade_schema` gives; alembic executes this file."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
