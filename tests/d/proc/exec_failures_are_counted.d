/* SPDX-License-Identifier: Apache-2.0 */
/* Each attempt of the shell fires exec; only those that fail fire exec-failure. */
/* flags: -q -c "/bin/sh -c '/no/such/program; /etc/passwd; /bin/true; exit 0'" */
proc:::exec
/ppid == $target/
{
	tries++;
}

proc:::exec-failure
/ppid == $target/
{
	printf("%d\n", args[0]);
}

proc:::exec-success
/ppid == $target/
{
	printf("done\n");
}

END
{
	printf("%d\n", tries);
}
/* output:
2
13
done
3

*/
