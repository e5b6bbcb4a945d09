/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: 9003 buckets. */
BEGIN
{
	@ = llquantize(999123, 10, 2, 6, 1000);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
          998000 |                                         0        
          999000 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        
         1000000 |                                         0        

*/
