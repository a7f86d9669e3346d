# A server of tools that speaks MCP on its standard input and output: the harbour's bell, and its weather.
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
    case $line in
    *'"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"harbour","version":"1"}}' ;;
    *'"tools/list"'*) answer '{"tools":[
        {"name":"ring","description":"Rings the bell.","inputSchema":{"type":"object"}},
        {"name":"天气","description":"The weather.","inputSchema":{"type":"object"},
         "outputSchema":{"type":"object","properties":{"sky":{"type":"string"}},"required":["sky"],"additionalProperties":false}}]}' | tr -d '\n'; echo ;;
    *'"tools/call"'*ring*) answer '{"content":[{"type":"text","text":"status=fail: the bell hangs too high"}]}' ;;
    *'"tools/call"'*) answer '{"content":[{"type":"text","text":"{\"sky\":\"小雨\"}"}],"structuredContent":{"sky":"小雨"}}' ;;
    esac
done
