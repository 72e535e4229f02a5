# Passes calls of the Remote Execution API on from port 50051 to the engine on port 50052. The engine states the versions 2.1 to 2.12,
# and Bazel 7 knows 2.0 alone: the lowest version becomes 2.0, by a field that is appended to the answer and replaces the one before.
from concurrent import futures

import grpc

OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
LOWEST_VERSION = b"\x22\x02\x10\x00"  # field 4, a message with field 2: 0
engine = grpc.insecure_channel("127.0.0.1:50052", options=OPTIONS)


def is_passed_on(name):
    return not name.startswith(("grpc-", "user-agent", ":"))


class Forwarder(grpc.GenericRpcHandler):
    def service(self, details):
        def forward(requests, context):
            metadata = [item for item in context.invocation_metadata() if is_passed_on(item[0])]
            answers = engine.stream_stream(details.method)(requests, metadata=metadata)
            try:
                for answer in answers:
                    yield answer + LOWEST_VERSION if details.method.endswith("/GetCapabilities") else answer
            except grpc.RpcError as error:
                context.set_trailing_metadata(error.trailing_metadata() or ())
                context.abort(error.code(), error.details())

        return grpc.stream_stream_rpc_method_handler(forward)


server = grpc.server(futures.ThreadPoolExecutor(64), handlers=[Forwarder()], options=OPTIONS)
server.add_insecure_port("127.0.0.1:50051")
server.start()
server.wait_for_termination()
