from nodeprint.cli import main

main()
