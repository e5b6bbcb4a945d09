/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that a process makes and waits for; arg0 is the request at both ends. Requests that the
   kernel merged end as one. */
/* flags: -q -c "/bin/sh -c 'dd if=/dev/zero of=/var/tmp/clew_d_io bs=4096 count=5 oflag=direct conv=fsync status=none; rm /var/tmp/clew_d_io'" */
io:::start
/execname == "dd"/
{
	started[arg0] = 1;
	starts++;
}

io:::done
/started[arg0]/
{
	started[arg0] = 0;
	ends++;
}

END
{
	printf("%d %d\n", ends >= 5, ends <= starts);
}
/* output:
1 1

*/
