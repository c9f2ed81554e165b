"""graphite-web's application, with a line in the file $ARRIVALS for each request before it is answered."""
import io
import json
import os

from graphite.wsgi import application as graphite


def application(environ, start_response):
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    query = "&".join(part for part in (environ["QUERY_STRING"], body.decode("latin-1")) if part)
    with open(os.environ["ARRIVALS"], "a") as file:
        file.write(json.dumps([environ["PATH_INFO"], query]) + "\n")
    return graphite(environ, start_response)
